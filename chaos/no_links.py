"""The links of a subject that has none: nothing can be cut, so nothing is ever left cut."""

from __future__ import annotations

from typing import NoReturn

from chaos.cluster import Link
from chaos.errors import InjectionError
from chaos.routes import Endpoint


class NoLinks:
    """Implements `chaos.cluster.LinkMesh` by refusing: this subject cannot have network faults."""

    def links(self) -> tuple[Link, ...]:
        """None."""
        return ()

    def heal(self) -> None:
        """Nothing to heal."""

    def is_healed(self) -> bool:
        """Always."""
        return True

    def cut(self, *links: Link) -> None:
        """Refused."""
        _refuse(f"cut {links}")

    restore = drop_responses = cut

    def degrade(self, link: Link, *, latency_ms: int = 0, jitter_ms: int = 0, rate_kb_s: int | None = None) -> None:
        """Refused."""
        _refuse(f"degrade {link} by {latency_ms} ± {jitter_ms} ms, {rate_kb_s} kB/s")

    def destination(self, link: Link) -> Endpoint:
        """Refused."""
        _refuse(f"give the destination of {link}")

    def redirect(self, link: Link, to: Endpoint) -> None:
        """Refused."""
        _refuse(f"redirect {link} to {to}")

    direct = cut


def _refuse(what: str) -> NoReturn:
    raise InjectionError(f"this subject has no links: cannot {what}")
