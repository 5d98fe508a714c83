"""Writes a file atomically: an interruption leaves the old one."""

from __future__ import annotations

import os
from pathlib import Path


def atomic_write(path: Path, text: str) -> None:
    """Write a text file as UTF-8, next to its place first, then moved; the directory must exist. Raises OSError.

    Lone surrogates, which names of files may have, become question marks.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_bytes(text.encode("utf-8", "replace"))
    new.replace(path)
