"""The place of the per-user cache; `fixtures.downloads.cache` fills it."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path:
    """The directory of the per-user cache; it need not exist. XDG asks to ignore relative paths."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(configured) if Path(configured).is_absolute() else Path.home() / ".cache"
    return base / "onceproof"
