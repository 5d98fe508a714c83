"""What images are built from, without an engine."""

from __future__ import annotations

import io
import os
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.clusters.docker import root_filesystem
from fixtures.clusters.docker.image_recipe import kafka_recipe, toxiproxy_recipe
from fixtures.clusters.docker.images import mirrored
from fixtures.clusters.docker.root_filesystem import RootFiles, c_library, tree, unpack
from fixtures.clusters.errors import ImageError
from fixtures.clusters.locks.releases import Origin, Release, ReleaseFiles
from fixtures.downloads.progress import Downloads

JAR = ReleaseFiles(
    release=Release.parse("4.3.1"), jars=(Path("kafka.jar"),), digests={"kafka.jar": "00"}, origin=Origin.LOCKED
)


def written(files: RootFiles) -> bytes:
    """The archive."""
    target = io.BytesIO()
    files.write(target)
    return target.getvalue()


def test_the_same_files_make_the_same_archive(tmp_path: Path) -> None:
    """Neither their times nor the order in which they are named matter, and programs stay executable."""
    program, text = tmp_path / "program", tmp_path / "text"
    for path in (program, text):
        path.write_bytes(path.name.encode())
    program.chmod(0o700)
    text.chmod(0o600)
    first = written(RootFiles(files={"bin/program": program, "etc/text": text}))
    os.utime(text, (1, 1))
    assert written(RootFiles(files={"etc/text": text, "bin/program": program})) == first
    with tarfile.open(fileobj=io.BytesIO(first)) as archive:
        modes = {member.name: member.mode for member in archive}
    assert modes == {"tmp": 0o1777, "bin/program": 0o755, "etc/text": 0o644}


def test_a_tree_keeps_its_shape_and_loses_its_links(tmp_path: Path) -> None:
    """Files are found below the new name, links as what they lead to."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "real").write_text("x", encoding="utf-8")
    (tmp_path / "link").symlink_to("lib/real")
    assert tree(tmp_path, "opt/it") == {
        "opt/it/lib/real": tmp_path / "lib" / "real",
        "opt/it/link": tmp_path / "lib" / "real",
    }


def test_unpacking_stays_inside_and_opens_everything(tmp_path: Path) -> None:
    """A name that leads out of the directory is dropped; the rest may be changed by anybody."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"x")
    target.mkdir()
    unpack([written(RootFiles(files={"data/inside": source, "../outside": source}))], target)
    assert [path.relative_to(target) for path in target.rglob("*")] == [Path("data"), Path("data/inside")]
    assert (target / "data" / "inside").stat().st_mode & 0o777 == 0o666
    assert not (tmp_path / "outside").exists()


def test_an_image_is_named_after_all_its_content(tmp_path: Path) -> None:
    """Another jar, another release or another server make another image; the same ones the same, fetching nothing."""
    binary = tmp_path / "toxiproxy-server"
    binary.write_bytes(b"one")
    quiet = Downloads(quiet=True)
    first, server = kafka_recipe(JAR, quiet).reference, toxiproxy_recipe(binary).reference
    assert kafka_recipe(JAR, quiet).reference == first
    assert first.startswith("onceproof/kafka:4.3.1-")
    assert kafka_recipe(replace(JAR, digests={"kafka.jar": "01"}), quiet).reference != first
    binary.write_bytes(b"two")
    assert toxiproxy_recipe(binary).reference != server
    assert quiet.items == []


def test_the_c_library_is_where_programs_look_for_it() -> None:
    """The loader has the place that the processor's ABI gives it, and every file exists."""
    found = c_library()
    assert any(name.startswith("lib") and "/ld-linux-" in name for name in found)
    assert "opt/glibc/libc.so.6" in found
    assert all(path.is_file() and not path.is_symlink() for path in found.values())


def test_a_machine_that_cannot_build_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without glibc on a known processor an image has to come from elsewhere."""
    monkeypatch.setattr(root_filesystem, "machine", lambda: "riscv64")
    with pytest.raises(ImageError, match=r"only on Linux with glibc.*ONCEPROOF_KAFKA_IMAGE"):
        c_library()


@pytest.mark.parametrize(
    ("prefix", "reference", "expected"),
    [
        ("", "apache/kafka:4.3.1", "apache/kafka:4.3.1"),
        ("registry.example", "apache/kafka:4.3.1", "registry.example/apache/kafka:4.3.1"),
        ("registry.example:5000/hub/", "apache/kafka:4.3.1", "registry.example:5000/hub/apache/kafka:4.3.1"),
        ("registry.example", "ghcr.io/shopify/toxiproxy:2.12.0", "registry.example/shopify/toxiproxy:2.12.0"),
        ("registry.example", "localhost/kafka:4.3.1", "registry.example/kafka:4.3.1"),
        ("registry.example", "kafka:4.3.1", "registry.example/kafka:4.3.1"),
    ],
)
def test_a_mirror_stands_in_the_place_of_a_registry(prefix: str, reference: str, expected: str) -> None:
    """A registry that an image names is replaced, never prefixed; a tag's colon makes no registry."""
    assert mirrored(reference, {"ONCEPROOF_IMAGE_PREFIX": prefix}) == expected
