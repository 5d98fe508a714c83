"""The pages of figures in `docs/`: only a complete run writes one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from runner.config import ROOT


def publish(page: Path, text: str | None, say: Callable[[str], None]) -> None:
    """Write a page, or, for a run that was not complete and has no `text`, say that it stays as it is."""
    shown = page.relative_to(ROOT)
    if text is None:
        say(f"{shown} is only written by a complete run")
        return
    page.write_text(text, encoding="utf-8")
    say(f"written: {shown}")
