"""The layout of the checkout: rules that the linter cannot check, and names in prose that must exist."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.support.checkout import tracked, written
from tests.support.paths import ROOT

PACKAGES = ("suites", "benchmarks", "runner", "fixtures", "reports", "chaos", "verification", "wire")
#: A folder with more modules is hard to survey. In `suites` every module is an experiment.
MODULES_MAX = 25
#: A module, file or folder of this project in prose: dotted or with slashes, in backticks.
_NAMED = re.compile(r"`((?:%s|tests|docs)(?:[./][\w*<>{}-]+)+/?)`" % "|".join(PACKAGES))  # noqa: UP031 - braces of its own
#: Files that the reader of a guide writes.
_EXAMPLES = frozenset(
    {"verification/checks/offsets.py", "chaos/faults/followers.py", "suites/recovery/test_clean_stop.py"}
)
#: The same part in the driver of each client library, next to its kin in a folder of that library.
_TWINS = {"Observing", "Sender", "Source"}
#: Names of files that a run makes, and patterns.
_MADE = re.compile(r"[*<>{}]|^reports/out|^docs/.*\.html$")


def test_every_package_has_its_place_in_the_import_contract() -> None:
    """A top-level folder with modules is a root package of import-linter, and stands in the first contract."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    folders = {path.relative_to(ROOT).parts[0] for path in tracked("*.py") if path.parent != ROOT}
    assert folders - {"tests"} == set(settings["root_packages"])
    layered = {name for layer in settings["contracts"][0]["layers"] for name in layer.split(" | ")}
    assert layered == set(settings["root_packages"])


def test_no_folder_has_too_many_modules() -> None:
    """A folder that grows past the bound must be divided."""
    sizes = Counter(
        path.parent.relative_to(ROOT) for path in tracked("*.py") if path.name != "__init__.py" and path.parent != ROOT
    )
    large = {
        str(folder): count for folder, count in sizes.items() if count > MODULES_MAX and folder.parts[0] != "suites"
    }
    assert not large, large


def test_no_class_name_stands_for_two_things() -> None:
    """A class name of the product is defined once, except for the parts that each client library has."""
    places = defaultdict(list)
    for path in tracked("*.py"):
        if path.relative_to(ROOT).parts[0] != "tests":
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    places[node.name].append(str(path.relative_to(ROOT)))
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert twice.keys() == _TWINS, twice


def _named() -> Iterator[tuple[Path, str]]:
    for path in written("*.py", "*.md", "*.j2", "*.toml", "*.ini", "*.sql"):
        for name in _NAMED.findall(path.read_text(encoding="utf-8")):
            if not _MADE.search(name) and name not in _EXAMPLES:
                yield path.relative_to(ROOT), name


def _says(source: Path, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", source.read_text(encoding="utf-8")) is not None


def _exists(name: str) -> bool:
    """Whether a path exists, or a dotted name is a module, or something that the text of a module defines."""
    if "/" in name:
        return (ROOT / name).exists()
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:end])
        sources = [each for each in (place.with_suffix(".py"), place / "__init__.py") if each.is_file()]
        if sources or place.is_dir():
            return parts[end:] == [] or any(_says(each, parts[end]) for each in sources)
    return False


def test_prose_names_what_exists() -> None:
    """A module or file that prose names in backticks exists."""
    gone = sorted({f"{path}: {name}" for path, name in _named() if not _exists(name)})
    assert not gone, "\n".join(gone)
