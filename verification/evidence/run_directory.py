"""Where evidence lies.

One scenario's directory:

    scenario.json                      what was tried (`verification.vocabulary.experiment`)
    history.jsonl                      operations, faults, phases, samples (`verification.evidence.history_file`)
    acks/<process>.jsonl.gz            one line per operation, for example
                                       {"operation": 3, "acks": [[index, topic_index, partition, offset, outcome]]};
                                       outcome is ok, fail or info; offset is -1 where none was told
    observations/<observer>.jsonl.gz   one line per poll that returned records, for example
                                       {"poll": 7, "received_ns": 1, "records": [[topic_index, partition, offset, text]]}
                                       text is the identity part of the value, "" for a foreign value
    captures.json                      ends, group offsets, coordinator states at quiescence
                                       (`verification.vocabulary.quiescent_state`)
    transaction_log.jsonl.gz           what coordinators wrote meanwhile (`verification.evidence.transaction_log_file`)
    log/ uncommitted/ committed/       Parquet, schemas in `verification.sources.schema`
    brokers/broker-<i>.log
    findings/<anomaly>/                every violation with its records
    verdicts.json                      the judgement (`verification.vocabulary.verdict`)
    README.txt                         how to run it again, what each file is

A whole run's directory has `runs/<scenario>/` with these, beside the faces of its report (`reports.formats.write`).

A protocol case leaves one file, `script.json` (`verification.scripts.script`), in a directory of its own; a sweep's
directory has `runs/<case>/`. A directory that holds both kinds is read as both.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

#: What a scenario's directory may hold, in the order in which people are shown it.
CONTENTS = (
    ("README.txt", "how to run it again, what each file is"),
    ("scenario.json", "what was tried"),
    ("history.jsonl", "what clients did and were told, faults, phases, samples"),
    ("verdicts.json", "the judgement"),
    ("captures.json", "ends and coordinator states at quiescence"),
    ("transaction_log.jsonl.gz", "what coordinators wrote into __transaction_state"),
    ("acks", "each record's acknowledgement"),
    ("observations", "what live observers were given"),
    ("log", "every record and control record by offset, Parquet"),
    ("uncommitted", "what a read_uncommitted client was given, Parquet"),
    ("committed", "what a read_committed client was given, Parquet"),
    ("brokers", "broker logs"),
    ("findings", "every violation with its records"),
)


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """The paths of one scenario's evidence.

    Where `source` is a URI, the run lies there, and `root` holds a copy without its captures
    (`verification.spark.remote_evidence`).
    """

    root: Path
    source: str = ""

    def location(self, path: Path) -> str:
        """A path of this directory as Spark is given it."""
        return f"{self.source}/{path.relative_to(self.root).as_posix()}" if self.source else str(path.resolve())

    @property
    def experiment(self) -> Path:
        """scenario.json."""
        return self.root / "scenario.json"

    @property
    def history(self) -> Path:
        """history.jsonl."""
        return self.root / "history.jsonl"

    @property
    def acks(self) -> Path:
        """Directory of acknowledgements."""
        return self.root / "acks"

    @property
    def observations(self) -> Path:
        """Directory of what live observers were given."""
        return self.root / "observations"

    @property
    def captures(self) -> Path:
        """captures.json."""
        return self.root / "captures.json"

    @property
    def transaction_log(self) -> Path:
        """transaction_log.jsonl.gz."""
        return self.root / "transaction_log.jsonl.gz"

    @property
    def log(self) -> Path:
        """Parquet of every record and control record by offset."""
        return self.root / "log"

    @property
    def uncommitted(self) -> Path:
        """Parquet of what a read_uncommitted client was given at quiescence."""
        return self.root / "uncommitted"

    @property
    def committed(self) -> Path:
        """Parquet of what a read_committed client was given at quiescence."""
        return self.root / "committed"

    @property
    def brokers(self) -> Path:
        """Directory of broker logs."""
        return self.root / "brokers"

    @property
    def findings(self) -> Path:
        """Directory of full findings."""
        return self.root / "findings"

    @property
    def readme(self) -> Path:
        """README.txt."""
        return self.root / "README.txt"

    @property
    def verdicts(self) -> Path:
        """verdicts.json."""
        return self.root / "verdicts.json"


#: What a protocol case leaves.
SCRIPT = "script.json"


def _is_scenario(path: Path) -> bool:
    return (path / "scenario.json").exists() or (path / "history.jsonl").exists()


def _below(path: Path) -> list[Path]:
    runs = path / "runs"
    return sorted(each for each in runs.iterdir() if each.is_dir()) if runs.is_dir() else []


def scenario_directories(path: Path) -> tuple[RunDirectory, ...]:
    """The scenarios' directories of a whole run, or the one that `path` is itself; empty when it is neither."""
    if _is_scenario(path):
        return (RunDirectory(path),)
    if (path / SCRIPT).exists():
        return ()
    return tuple(RunDirectory(each) for each in _below(path) if _is_scenario(each) or not (each / SCRIPT).exists())


def case_directories(path: Path) -> tuple[Path, ...]:
    """The directories of a sweep's protocol cases, or the one that `path` is itself; empty when it is neither."""
    if (path / SCRIPT).exists():
        return (path,)
    return tuple(each for each in _below(path) if (each / SCRIPT).exists())
