"""Class archives are made once, are really mapped, and are never the reason for a failure."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fixtures.clients.java import launch
from fixtures.clients.java.gateway import FLAGS, gateway_jar
from fixtures.tools.java import Java, JavaOrigin
from fixtures.tools.jvm_class_archive import Archived, sharing_options


class _Maker:
    """Writes an archive, or not, and counts how often it was asked to."""

    def __init__(self, *, works: bool) -> None:
        self.works = works
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, options: tuple[str, ...], scratch: Path) -> bool:
        assert scratch.is_dir()
        self.asked.append(options)
        at_exit = next(option for option in options if option.startswith("-XX:ArchiveClassesAtExit="))
        # A program that did not end cleanly may have left half of one.
        Path(at_exit.partition("=")[2]).write_bytes(b"classes")
        return self.works


def _program(home: Path, make: _Maker, jar: str = "a.jar") -> Archived:
    (home / "lib" / "server").mkdir(parents=True, exist_ok=True)
    (home / "lib" / "server" / "classes.jsa").touch()
    if not (home / jar).exists():
        (home / jar).touch()
    java = Java(home=home, executable=home / "bin" / "java", major=21, origin=JavaOrigin.PATH, spark_ok=True)
    return Archived(name="program", java=java, flags=("-Xmx128m",), classpath=str(home / jar), make=make)


def _use(program: Archived, cache: Path) -> tuple[str, ...]:
    return sharing_options(program, say=lambda _: None, cache=cache)


def test_an_archive_is_made_once(tmp_path: Path) -> None:
    """The second start maps what the first one made; other jars need another archive."""
    make = _Maker(works=True)
    first = _use(_program(tmp_path / "java", make), tmp_path)
    assert _use(_program(tmp_path / "java", make), tmp_path) == first
    assert len(make.asked) == 1
    assert Path(first[0].partition("=")[2]).read_bytes() == b"classes"
    assert _use(_program(tmp_path / "java", make, jar="b.jar"), tmp_path) != first
    assert len(make.asked) == 2


def test_a_jar_that_was_replaced_asks_for_another_archive(tmp_path: Path) -> None:
    """A JVM refuses an archive whose jars have other times by now: another one is made, and found from then on."""
    make = _Maker(works=True)
    first = _use(_program(tmp_path / "java", make), tmp_path)
    program = _program(tmp_path / "java", make)
    os.utime(tmp_path / "java" / "a.jar", (0, 0))
    second = _use(program, tmp_path)
    assert second != first
    assert _use(program, tmp_path) == second
    assert len(make.asked) == 2
    os.utime(tmp_path / "java" / "a.jar", (7, 7))
    assert _use(program, tmp_path) not in (first, second)
    assert len(list((tmp_path / "class-archives").glob("program-*.jsa"))) == 2, "the oldest one is removed"


def test_what_cannot_be_made_is_not_tried_again(tmp_path: Path) -> None:
    """A runtime that cannot make an archive starts without one, and half an archive is not used."""
    make = _Maker(works=False)
    assert _use(_program(tmp_path / "java", make), tmp_path) == ()
    assert _use(_program(tmp_path / "java", make), tmp_path) == ()
    assert len(make.asked) == 1


def test_what_could_not_be_made_is_tried_again_after_an_hour(tmp_path: Path) -> None:
    """A machine that was short of memory for a moment looks like a runtime that cannot make one."""
    said: list[str] = []
    program = _program(tmp_path / "java", _Maker(works=False))
    assert sharing_options(program, say=said.append, cache=tmp_path) == ()
    assert said[1:] == ["No class archive of program came about: it starts without one"]
    (empty,) = (tmp_path / "class-archives").glob("program-*.jsa")
    os.utime(empty, (0, 0))
    assert _use(_program(tmp_path / "java", _Maker(works=True)), tmp_path)


@pytest.mark.cluster
def test_a_java_client_maps_its_classes_from_the_archive() -> None:
    """The class that costs most is not loaded from a jar but mapped, in a JVM that is started as the driver starts it."""
    command = launch.command(None)
    java, jars = (command[command.index(name) + 1] for name in ("--java", "--classpath"))
    options = [each.partition("=")[2] for each in command if each.startswith("--jvm-option=")]
    assert options, "no archive could be made"
    sender = "org.apache.kafka.clients.producer.KafkaProducer"
    # It has no main method: the JVM loads it, says so, and ends.
    loaded = subprocess.run(
        [java, *FLAGS, *options, "-Xlog:class+load", "-cp", f"{gateway_jar()}:{jars}", sender],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    ).stdout
    assert f"{sender} source: shared objects file (top)" in loaded
