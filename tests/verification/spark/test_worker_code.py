"""Our code for Spark's workers: the archive and the time for which it stays."""

from __future__ import annotations

import atexit
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from verification.spark import worker_code


def test_an_interruption_while_it_is_packed_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory is registered for removal before the archive is written: Ctrl-C often comes at this moment."""
    registered: list[tuple[Any, ...]] = []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(atexit, "register", lambda *call, **_: registered.append(call))

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile, "ZipFile", interrupted)
    with pytest.raises(KeyboardInterrupt):
        worker_code._archive()
    (directory,) = tmp_path.iterdir()
    ((remove, found),) = registered
    assert found == directory
    remove(found)
    assert not list(tmp_path.iterdir())
