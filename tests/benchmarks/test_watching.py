"""The page about memory and disk of `watch`; `python -m benchmarks.watching` runs the rest."""

from __future__ import annotations

import pytest

from benchmarks.watching.__main__ import BENCHMARK
from benchmarks.watching.page import MEGABYTE, Seen, page, table
from verification.vocabulary.verdict import ExitCode

OUTPUT = """\
    broker 2 left the cluster
    leader of billing-events-1 moved 2 → 3
    broker 2 is back after 4.0 s
    broker 2 changed from Kafka 4.3 to Kafka 4.4
    metadata.version changed from 30 to 33
PASS          watch-window-confluent-1-1  52 s  nothing was found and every coverage floor was reached
FAIL          watch-window-confluent-1-2  52 s  found 1 loss
    … [1/2] 30 s │ 41 commits/s │ longest gap 2.1 s │ Kafka 4.3: 1, 2, 3
"""


@pytest.fixture
def seen() -> Seen:
    """Four minutes: memory rises in the first, the directory by 5 MB in each."""
    found = Seen(acts=[(1.5, "broker 2 is upgraded")])
    for minute, memory in ((0.1, 900), (0.9, 1_500), (1.5, 1_400), (2.5, 1_400), (3.5, 1_450)):
        found.look(minute, memory=memory * MEGABYTE, disk=round(minute + 1) * 5 * MEGABYTE)
    return found


def test_a_minute_counts_by_its_greatest_look(seen: Seen) -> None:
    """Quarters of the run show whether memory rises, and how fast the directory grows."""
    assert seen.each_minute(seen.memory) == [1_500, 1_400, 1_400, 1_450]
    text = table(seen, OUTPUT)
    assert "| 1 … 1 " in text
    assert "| 1450 MB " in text
    assert text.endswith("Windows: 1 PASS, 1 FAIL.")
    assert seen.plot().settings == ("1", "2", "3", "4")


def test_the_page_has_the_changes_that_watch_saw(seen: Seen) -> None:
    """Next to the acts of others; moves of leaders are counted."""
    text = page(seen, OUTPUT, ("2 processors",))
    assert "| 1.5 | broker 2 is upgraded |" in text
    assert "* broker 2 changed from Kafka 4.3 to Kafka 4.4" in text
    assert "* metadata.version changed from 30 to 33" in text
    assert "printed 1 moves of leaders" in text
    assert "commits/s" not in text


def test_less_than_a_window_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is started."""
    with pytest.raises(SystemExit) as ended:
        BENCHMARK.main(["--minutes", "0"])
    assert ended.value.code == ExitCode.USAGE
    assert "--minutes 0 is less than one window" in capsys.readouterr().err
