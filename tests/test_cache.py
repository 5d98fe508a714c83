"""The per-user cache: where it is, who may write, and what a killed process leaves behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fixtures.downloads.cache import cache_dir, describe, exclusive, readable, scratch, size_bytes
from fixtures.waiting import WaitedInVainError


def silent(_: str) -> None:
    """Say nothing."""


def test_place_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The cache is below XDG_CACHE_HOME, else ~/.cache; a relative XDG path does not count."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "xdg" / "onceproof"
    for unusable in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", unusable)
        assert cache_dir() == tmp_path / "home" / ".cache" / "onceproof"


def test_description_tells_size_and_removal(tmp_path: Path) -> None:
    """Where it is, how large, and the command that removes it stand in one line; an absent cache has no size."""
    cache = tmp_path / "onceproof"
    assert size_bytes(cache) == 0
    (cache / "deep").mkdir(parents=True)
    (cache / "deep" / "file").write_bytes(b"x" * 1_500_000)
    assert describe(cache) == f"{cache}, 1.5 MB; remove it with: rm -rf {cache}"
    assert readable(2_340_000_000) == "2.3 GB"


def test_writers_take_turns(tmp_path: Path) -> None:
    """While one writer holds a part of the cache, another waits, says so, and goes on when it is released."""
    said: list[str] = []
    entered = threading.Event()

    def second() -> None:
        with exclusive(tmp_path, "java", say=said.append):
            entered.set()

    other = threading.Thread(target=second)
    with exclusive(tmp_path, "java", say=silent):
        other.start()
        assert not entered.wait(0.3)
    assert entered.wait(10)
    other.join(10)
    assert said == [f"waiting for another process that is fetching java in {tmp_path} …"]


def test_parts_of_the_cache_do_not_block_each_other(tmp_path: Path) -> None:
    """Different names are different locks."""
    with exclusive(tmp_path, "java", say=silent), exclusive(tmp_path, "toxiproxy", say=silent, deadline_s=0):
        pass


def test_endless_writer_is_not_waited_for_endlessly(tmp_path: Path) -> None:
    """After the deadline the sentence says what was waited for and how to get around it."""
    with (
        exclusive(tmp_path, "java", say=silent),
        pytest.raises(WaitedInVainError, match=r"fetching java in .*XDG_CACHE_HOME"),
        exclusive(tmp_path, "java", say=silent, deadline_s=0.2),
    ):
        pass


def test_scratch_vanishes_even_after_an_error(tmp_path: Path) -> None:
    """A scratch directory is removed with everything in it."""
    with pytest.raises(RuntimeError), scratch(tmp_path, say=silent) as directory:  # noqa: PT012 - the content matters
        (directory / "half").write_text("done")
        raise RuntimeError
    assert not directory.exists()


def test_scratch_of_a_killed_process_is_swept(tmp_path: Path) -> None:
    """What a killed process left behind is removed by the next one, while that of a living one stays."""
    script = (
        "import sys, time; from pathlib import Path; from fixtures.downloads.cache import scratch\n"
        "with scratch(Path(sys.argv[1]), say=print) as directory:\n"
        "    print(directory, flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, cwd=Path(__file__).parent.parent, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        with scratch(tmp_path, say=silent):
            assert left.is_dir()
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    with scratch(tmp_path, say=silent) as own:
        assert not left.exists()
        assert own.is_dir()
