"""Fixtures of tests of frames: links that read them, and a broker behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chaos.frames import FrameLinks
from tests.support.servers.frame_broker import FrameBroker, frame_broker, sound
from tests.support.wire_definitions import definitions


@pytest.fixture
def links() -> Iterator[FrameLinks]:
    with FrameLinks(definitions()) as links:
        yield links
        assert sound(links)


@pytest.fixture
def broker() -> Iterator[FrameBroker]:
    with frame_broker() as broker:
        yield broker
