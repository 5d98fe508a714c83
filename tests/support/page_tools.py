"""Public checkers of output files: axe-core for accessibility, the Nu Html Checker for HTML, the schema of CTRF.

All are published in the npm registry. Their archives are fetched by digest into the cache, with the functions that
fetch jars, and are never committed. `ONCEPROOF_NPM_REGISTRY` names another registry. Where they cannot be fetched, tests
are skipped with a line that says why, unless ONCEPROOF_REQUIRE_BROWSER=1, which CI sets.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fixtures.downloads.cache import cache_dir
from fixtures.downloads.download import Digest, download, open_session
from fixtures.downloads.progress import Downloads
from fixtures.errors import OnceproofError
from fixtures.tools.java import find_java

DEFAULT_REGISTRY = "https://registry.npmjs.org"
#: A page of two megabytes takes ten seconds on one core.
WITHIN_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One pinned archive, and the one file of it that is used."""

    name: str
    version: str
    sha512: str
    member: str

    @property
    def file(self) -> str:
        """The archive's name, in the registry and in the cache."""
        return f"{self.name}-{self.version}.tgz"


AXE = Package(
    name="axe-core",
    version="4.14.1",
    sha512="1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b2"
    "14d36db85a2826965edfb3a0b9d546b5",
    member="package/axe.min.js",
)
NU = Package(
    name="vnu-jar",
    version="26.9.27",
    sha512="4e441de4315f39a582f5e6edbe8cd3b2b1f655aa1dde3620faface791133217c417b12f3f7ead2d8336d8e7e"
    "fe44f5226618258b44a0860057e9125135e6b428",
    member="package/build/dist/vnu.jar",
)
#: The reference implementation, by the authors of the format; MIT.
CTRF = Package(
    name="ctrf",
    version="0.3.0",
    sha512="da5b9580a085fc0fe980c298e7801476270235b53e1f2dc197ec70729f7c8a7012b7fd1f9e8342fc0e01c21f"
    "c63b8edc22e0f973b492dcc63f0d8e3674f7f8cd",
    member="package/dist/ctrf-schema-0.0.json",
)


def required() -> bool:
    """Whether a browser and these checkers must be here, as in CI."""
    return os.environ.get("ONCEPROOF_REQUIRE_BROWSER") == "1"


def registry_url() -> str:
    """The registry that the archives come from."""
    return (os.environ.get("ONCEPROOF_NPM_REGISTRY") or DEFAULT_REGISTRY).rstrip("/")


@functools.cache
def archive(package: Package) -> Path | str:
    """The archive in the cache, or the sentence that says why it cannot be fetched; tried once in a session."""
    url = f"{registry_url()}/{package.name}/-/{package.file}"
    digest = Digest(algorithm="sha512", value=package.sha512)
    try:
        with open_session() as session:
            target = cache_dir() / "npm" / package.file
            return download(url, target, digest=digest, downloads=Downloads(), session=session)
    except OnceproofError as error:
        return error.sentence


def file_of(package: Package) -> bytes:
    """The file that is used; skips or fails the test when it cannot be fetched."""
    found = archive(package)
    if isinstance(found, str):
        if required():
            pytest.fail(found)
        pytest.skip(f"{package.name} cannot be had here: {found}")
    with tarfile.open(found) as opened:
        member = opened.extractfile(package.member)
        assert member is not None, f"{package.file} has no file {package.member}"
        return member.read()


def faults_of(pages: list[Path], directory: Path) -> list[str]:
    """The messages of the Nu Html Checker about pages, with warnings; `directory` is a place for the checker itself."""
    jar = directory / "vnu.jar"
    jar.write_bytes(file_of(NU))
    done = subprocess.run(
        [str(find_java().executable), "-jar", str(jar), "--format", "json", "--exit-zero-always", *map(str, pages)],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=True,
    )
    said: list[dict[str, Any]] = json.loads(done.stderr or done.stdout)["messages"]
    return [
        f"{Path(each.get('url', '')).name}:{each.get('lastLine', 0)}: {each['message']}: {each.get('extract', '')}"
        for each in said
    ]
