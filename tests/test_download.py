"""One file from one address, into the cache or not at all."""

from __future__ import annotations

import hashlib
import io
import os
import pty
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.downloads import download as subject
from fixtures.downloads.download import Digest, digest_of, download, fetch_text, open_session
from fixtures.downloads.progress import Downloads
from fixtures.errors import CacheNotWritableError, DigestMismatchError, DownloadError, NetworkError
from tests.local_server import LocalServer, Page

BODY = random.Random(7).randbytes(400_000)
PATH = "/things/thing.jar"
RIGHT = Digest(algorithm="sha256", value=hashlib.sha256(BODY).hexdigest())


@pytest.fixture(autouse=True)
def _quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_BACKOFF_S", 0.001)


@pytest.fixture
def server() -> Iterator[LocalServer]:
    site = LocalServer()
    site.pages[PATH] = Page(body=BODY)
    with site.running():
        yield site


def fetch(server: LocalServer, target: Path, *, digest: Digest = RIGHT, downloads: Downloads | None = None) -> Path:
    with open_session() as session:
        log = downloads or Downloads(quiet=True)
        return download(server.url + PATH, target, digest=digest, downloads=log, session=session)


@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "sha512"])
def test_file_arrives_checked_and_is_remembered(server: LocalServer, tmp_path: Path, algorithm: str) -> None:
    """A download puts the promised file in place, leaves nothing else, and is listed with its size."""
    downloads = Downloads(quiet=True)
    digest = Digest(algorithm=algorithm, value=hashlib.new(algorithm, BODY).hexdigest())
    target = fetch(server, tmp_path / "new" / "thing.jar", digest=digest, downloads=downloads)
    assert target.read_bytes() == BODY
    assert [path.name for path in target.parent.iterdir()] == ["thing.jar"]
    assert [(item.name, item.size_bytes) for item in downloads.items] == [("thing.jar", len(BODY))]


def test_second_start_downloads_nothing(server: LocalServer, tmp_path: Path) -> None:
    """A file that is there and right is not asked for again."""
    fetch(server, tmp_path / "thing.jar")
    downloads = Downloads(quiet=True)
    fetch(server, tmp_path / "thing.jar", downloads=downloads)
    assert server.times_asked(PATH) == 1
    assert downloads.items == []


def test_broken_transfer_is_continued_where_it_broke(server: LocalServer, tmp_path: Path) -> None:
    """After a connection that ends early only the missing bytes are asked for."""
    server.pages[PATH].cut_after = [100_000, 50_000]
    assert fetch(server, tmp_path / "thing.jar").read_bytes() == BODY
    # Of the last chunk of 16 KiB what arrived is lost: 6 whole ones of 100 000 bytes, then 3 of 50 000.
    assert [asked.range_header for asked in server.asked] == [None, "bytes=98304-", "bytes=147456-"]


def test_part_of_an_earlier_run_is_continued(server: LocalServer, tmp_path: Path) -> None:
    """What an interrupted run left behind is kept and completed."""
    (tmp_path / "thing.jar.part").write_bytes(BODY[:300_000])
    assert fetch(server, tmp_path / "thing.jar").read_bytes() == BODY
    assert server.asked[0].range_header == "bytes=300000-"


@pytest.mark.parametrize("part", [b"x" * 1000, b"x" * 500_000], ids=["damaged", "longer than the file"])
def test_useless_part_costs_one_more_download(server: LocalServer, tmp_path: Path, part: bytes) -> None:
    """A part that does not belong to the file is thrown away, and the file is fetched from its first byte."""
    (tmp_path / "thing.jar.part").write_bytes(part)
    assert fetch(server, tmp_path / "thing.jar").read_bytes() == BODY
    assert [asked.range_header for asked in server.asked] == [f"bytes={len(part)}-", None]


def test_server_without_ranges_is_begun_again(server: LocalServer, tmp_path: Path) -> None:
    """A server that answers a range with the whole file does not corrupt the file."""
    server.pages[PATH].ranges = False
    server.pages[PATH].cut_after = [100_000]
    assert fetch(server, tmp_path / "thing.jar").read_bytes() == BODY


def test_damaged_target_is_replaced(server: LocalServer, tmp_path: Path) -> None:
    """A cached file with the wrong bytes is fetched again, once."""
    (tmp_path / "thing.jar").write_bytes(BODY[:-1] + b"?")
    assert fetch(server, tmp_path / "thing.jar").read_bytes() == BODY
    assert server.times_asked(PATH) == 1


def test_wrong_bytes_twice_name_file_and_digests(server: LocalServer, tmp_path: Path) -> None:
    """A file that is wrong after a second download is refused, named with both digests, and not kept."""
    wrong = b"something else"
    server.pages[PATH].body = wrong
    with pytest.raises(DigestMismatchError) as refused:
        fetch(server, tmp_path / "thing.jar")
    for part in ("thing.jar", server.url, RIGHT.value, hashlib.sha256(wrong).hexdigest()):
        assert part in str(refused.value)
    assert server.times_asked(PATH) == 2
    assert list(tmp_path.iterdir()) == []


def test_missing_file_is_not_asked_for_twice(server: LocalServer, tmp_path: Path) -> None:
    """404 is final: one request, one sentence with the address and the status."""
    del server.pages[PATH]
    with pytest.raises(DownloadError, match="404 Not Found") as refused:
        fetch(server, tmp_path / "thing.jar")
    assert refused.value.status == 404
    assert server.url + PATH in str(refused.value)
    assert server.times_asked(PATH) == 1
    assert list(tmp_path.iterdir()) == []


def test_busy_server_is_asked_again(server: LocalServer, tmp_path: Path) -> None:
    """Answers that pass by themselves are retried."""
    server.pages[PATH].statuses = [503, 429]
    assert fetch(server, tmp_path / "thing.jar").read_bytes() == BODY


def test_busy_server_is_given_up_after_four_attempts(server: LocalServer, tmp_path: Path) -> None:
    """Retries are bounded, and the last answer is in the sentence."""
    server.pages[PATH].statuses = [503] * 9
    with pytest.raises(NetworkError, match="4 attempts: the server answered 503"):
        fetch(server, tmp_path / "thing.jar")
    assert server.times_asked(PATH) == 4


def test_no_network_is_one_sentence_with_a_way_out(tmp_path: Path) -> None:
    """Where nobody answers, the sentence says what, from where, why, and how to fill the cache elsewhere."""
    site = LocalServer()
    with site.running():
        pass
    with pytest.raises(NetworkError) as refused:
        fetch(site, tmp_path / "thing.jar")
    for part in (site.url + PATH, "Connection refused", "tox -e fetch"):
        assert part in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_lost_network_keeps_what_arrived(server: LocalServer, tmp_path: Path) -> None:
    """When the server goes away in the middle, the part stays for the next start."""
    server.pages[PATH].cut_after = [20_000] * 9
    with pytest.raises(NetworkError, match="closed before the end"):
        fetch(server, tmp_path / "thing.jar")
    assert (tmp_path / "thing.jar.part").read_bytes() == BODY[: 4 * 16_384]


def test_nonsense_address_is_one_sentence(tmp_path: Path) -> None:
    """A repository that is no address is refused without retries."""
    with open_session() as session, pytest.raises(DownloadError, match="could not be fetched: Invalid URL"):
        fetch_text("nonsense/kafka.pom", session)


def test_unwritable_cache_is_one_sentence(server: LocalServer, tmp_path: Path) -> None:
    """A cache that cannot be created is told apart from a network that does not answer."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CacheNotWritableError, match="XDG_CACHE_HOME"):
        fetch(server, tmp_path / "file" / "thing.jar")
    assert server.asked == []


def test_two_processes_at_once_share_one_download(server: LocalServer, tmp_path: Path) -> None:
    """Processes that want the same file at the same time end with the right file after a single transfer."""
    server.pages[PATH].chunk_delay_s = 0.1
    script = (
        "import sys; from pathlib import Path\n"
        "from fixtures.downloads.download import Digest, download, open_session\n"
        "from fixtures.downloads.progress import Downloads\n"
        "url, target, value = sys.argv[1:]\n"
        "download(url, Path(target), digest=Digest(algorithm='sha256', value=value),"
        " downloads=Downloads(), session=open_session())"
    )
    command = [sys.executable, "-c", script, server.url + PATH, str(tmp_path / "thing.jar"), RIGHT.value]
    checkout = Path(__file__).parent.parent
    processes = [subprocess.Popen(command, cwd=checkout, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate(timeout=60)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], said
    assert digest_of(tmp_path / "thing.jar", "sha256") == RIGHT.value
    assert server.times_asked(PATH) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["thing.jar"]


def test_log_gets_plain_lines() -> None:
    """Where nobody watches, a group of files is one line without control characters."""
    stream = io.StringIO()
    downloads = Downloads(stream=stream)
    downloads.begin("the jars", expected_bytes=2_000_000)
    downloads.advance(1_000_000, position=1_000_000, total=2_000_000)
    assert stream.getvalue() == "fetching the jars (2.0 MB) …\n"


def test_terminal_sees_the_share(server: LocalServer, tmp_path: Path) -> None:
    """On a terminal one line is rewritten with the bytes that arrived of those expected, and then makes room."""
    server.pages[PATH].chunk_delay_s = 0.12
    reader, writer = pty.openpty()
    with os.fdopen(writer, "w") as terminal:
        downloads = Downloads(stream=terminal)
        downloads.begin("the thing", expected_bytes=len(BODY))
        fetch(server, tmp_path / "thing.jar", downloads=downloads)
        downloads.say("done")
        seen = ""
        while "done\r\n" not in seen:
            seen += os.read(reader, 65_536).decode()
    os.close(reader)
    assert "\r\x1b[K  0." in seen
    assert "of 0.4 MB" in seen
    assert " %)" in seen
    assert seen.endswith("\r\x1b[Kdone\r\n")


def test_listing_sums_up_by_group() -> None:
    """The list of what was downloaded has one line per group, and one line when there was nothing."""
    downloads = Downloads(quiet=True)
    assert downloads.listing() == ("Downloaded nothing: everything was there.",)
    downloads.begin("the jars")
    downloads.add("a.jar", url="http://x/a.jar", size_bytes=1_000_000, took_s=1.0)
    downloads.add("b.jar", url="http://x/b.jar", size_bytes=500_000, took_s=0.5)
    downloads.begin("the runtime")
    downloads.add("c.whl", url="pip:c", size_bytes=2_000_000_000, took_s=60.0)
    assert downloads.listing() == (
        "Downloaded the jars: 2 files, 1.5 MB in 1.5 s",
        "Downloaded the runtime: 1 file, 2.0 GB in 60.0 s",
    )


def test_unknown_digest_algorithm_is_refused() -> None:
    """A digest that is not one of the three is a mistake of the caller, found at once."""
    with pytest.raises(ValueError, match="md5"):
        Digest(algorithm="md5", value="0")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [({}, True), ({"SSL_CERT_FILE": "/a"}, "/a"), ({"SSL_CERT_FILE": "/a", "REQUESTS_CA_BUNDLE": "/b"}, "/b")],
)
def test_authorities_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str | bool
) -> None:
    """SSL_CERT_FILE is honoured, and REQUESTS_CA_BUNDLE wins over it."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with open_session() as session:
        assert session.verify == expected
