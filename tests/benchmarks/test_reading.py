"""The arithmetic of the comparison of sources, and its page; `tox -e bench-reading` runs the rest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import NoReturn
from unittest.mock import MagicMock

import pytest

from benchmarks.measuring.footprint import processor_s
from benchmarks.measuring.ratio import Unit
from benchmarks.reading.__main__ import BENCHMARK, RECORDS, TURNS, ReadingOptions
from benchmarks.reading.errors import UnequalError, UnfilledError
from benchmarks.reading.figures import bounds, page, ratios
from benchmarks.reading.filling import PARTITIONS, RECORDS_PER_TRANSACTION, VALUE_BYTES, fill, record_value
from benchmarks.reading.prebuilt import PREBUILT
from benchmarks.reading.reading import SOURCES, PinnedLog, Took, require_equal
from verification.sources.source import SourceName
from verification.vocabulary.identity import decode
from verification.vocabulary.verdict import ExitCode
from wire.client import Client
from wire.errors import DisconnectedError

HERE = (
    "Kafka 4.4.0, Java 17, commit abc1234, 2026-01-02",
    "2 processors (AMD EPYC, Linux x86_64), 24 GiB of memory, Linux 6.18, load average 0.0 before the start",
)
SECONDS = {
    SourceName.WIRE: (10.0, 5.0, 5.0),
    SourceName.CONNECTOR: (20.0, 20.0, 20.0),
    SourceName.CLIENT: (20.0, 20.0, 200.0),
    PREBUILT: (2.0, 2.0, 2.0),
}
TOOK = {source: [Took(seconds=each, processor_s=10.0) for each in took] for source, took in SECONDS.items()}


def test_ratios_are_of_rates_turn_by_turn() -> None:
    """Twice the speed is 2 for any number of seconds; the median decides whether a bound holds."""
    connector, client, *ceiling, one, two, three, four = ratios(1_000, TOOK)
    by_processor = [one, two, three, four]
    assert (connector.unit, connector.values) == (Unit.RECORDS_PER_S, (2.0, 4.0, 4.0))
    assert client.values == (2.0, 4.0, 40.0)
    assert [each.values for each in by_processor] == [(1.0, 1.0, 1.0)] * 4
    assert [each.values for each in ceiling] == [(10.0, 10.0, 10.0), (10.0, 10.0, 100.0)]
    found = bounds([connector, client, *ceiling, *by_processor])
    assert [(bound.seen, bound.holds) for bound in found] == [(4.0, True), (4.0, False)]
    assert str(found[1]).startswith("does not hold: wire reads at least 5.00 times as fast as confluent-kafka")


def test_the_page_says_what_does_not_hold() -> None:
    """Bounds, circumstances and both ratios."""
    text = page(ratios(10_000_000, TOOK), HERE)
    assert text.count("**no**") == 1
    assert "Kafka 4.4.0, Java 17, commit abc1234" in text
    assert "source `wire`, 10 000 000 records" in text


def test_processor_seconds_of_children_that_ended_count() -> None:
    """The time of a worker is not lost when it ends."""
    before = processor_s()
    subprocess.run([sys.executable, "-c", "sum(range(20_000_000))"], check=True)
    assert processor_s() - before > 0.1


def test_processor_seconds_of_others_do_not_count() -> None:
    """A process of the session that is not a descendant is ignored, such as one whose parent has ended."""
    busy = "import time; end_s = time.monotonic() + 60\nwhile time.monotonic() < end_s: pass"
    # Its output goes elsewhere; otherwise a reader of the parent's output would wait for it.
    started = f"subprocess.Popen([sys.executable, '-c', {busy!r}], stdout=subprocess.DEVNULL)"
    orphan = f"import subprocess, sys; print({started}.pid, flush=True)"
    pid = int(subprocess.run([sys.executable, "-c", orphan], check=True, stdout=subprocess.PIPE).stdout)
    try:
        assert os.getsid(pid) == os.getsid(0)
        before, began = processor_s(), ticks_of(pid)
        waited = time.monotonic() + 20
        while ticks_of(pid) - began < 50 and time.monotonic() < waited:
            time.sleep(0.05)
        assert ticks_of(pid) - began >= 50, "it used no processor time to be counted"
        # The cost of looking is this process's own.
        assert processor_s() - before < 0.4
    finally:
        os.kill(pid, signal.SIGKILL)


def ticks_of(pid: int) -> int:
    """User time of a process so far, in hundredths of a second."""
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11])


def test_only_a_complete_run_writes_the_page() -> None:
    """A smaller run is for a look after a change."""
    assert ReadingOptions(records=RECORDS, turns=TURNS).complete
    assert not ReadingOptions(records=RECORDS - 1, turns=TURNS).complete
    assert not ReadingOptions(records=RECORDS, turns=TURNS - 1).complete
    with pytest.raises(SystemExit) as raised:
        BENCHMARK.main(["--records", "0"])
    assert raised.value.code == ExitCode.USAGE


def test_what_was_read_must_be_what_was_written() -> None:
    """Sources that differ give no figure, nor do sources that agree on too few records or on no identity."""
    turns = 3
    ends = dict.fromkeys(range(PARTITIONS), turns * (RECORDS_PER_TRANSACTION // PARTITIONS + 1))
    records = PinnedLog(bootstrap="", definitions=(), ends=ends).records
    assert records == turns * RECORDS_PER_TRANSACTION
    whole = {"records": records, "valid": records, "digest": 1}
    require_equal(dict.fromkeys(SOURCES, whole), records)
    with pytest.raises(UnequalError, match="different records"):
        require_equal(dict.fromkeys(SOURCES, whole) | {SourceName.CLIENT: whole | {"digest": 2}}, records)
    for few in ({"records": records - 1, "valid": records - 1}, {"valid": 0}):
        with pytest.raises(UnequalError, match=f"{records} were written"):
            require_equal(dict.fromkeys(SOURCES, whole | few), records)


def test_what_keeps_figures_from_coming_about_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """An error of any package; the code is not that of a violation."""

    def fail(*_: object) -> NoReturn:
        raise DisconnectedError("broker 1 hung up")

    assert replace(BENCHMARK, measure=fail).main([]) == ExitCode.ENVIRONMENT
    assert capsys.readouterr().err == "broker 1 hung up\n"


def test_a_log_that_is_not_written_is_an_error_of_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the producer becomes one of the benchmark, for example if no broker is reachable."""
    monkeypatch.setattr("benchmarks.reading.filling.WITHIN_S", 0.2)
    asking = MagicMock(spec=Client)
    with pytest.raises(UnfilledError, match="The log to read was not written"):
        fill(asking, "127.0.0.1:1", 1)


def test_what_is_read_has_identities() -> None:
    """Values have the size on the page, one for each place in a transaction, spread evenly over partitions."""
    values = [record_value(7, index) for index in range(RECORDS_PER_TRANSACTION)]
    found = [decode(value) for value in values]
    assert {len(value) for value in values} == {VALUE_BYTES}
    assert all(each is not None and each.operation == 7 for each in found)
    assert sorted(each.intended_partition for each in found if each) == sorted(
        list(range(PARTITIONS)) * (RECORDS_PER_TRANSACTION // PARTITIONS)
    )
    assert set(SOURCES) == {SourceName.WIRE, SourceName.CONNECTOR, SourceName.CLIENT}
