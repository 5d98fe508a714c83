"""The layout of a run's directory: paths of all evidence.

One scenario's directory:

    scenario.json                      the experiment (`verification.vocabulary.experiment`)
    history.jsonl                      operations, faults, phases, samples (`verification.evidence.history_file`)
    acks/<process>.jsonl.gz            one line per operation, for example
                                       {"operation": 3, "acks": [[index, topic_index, partition, offset, outcome]]};
                                       outcome is ok, fail or info; offset is -1 where the answer has none
    observations/<observer>.jsonl.gz   one line per poll that returned records, for example
                                       {"poll": 7, "received_ns": 1, "records": [[topic_index, partition, offset, text]]}
                                       text is the identity part of the value, "" for a foreign value
    captures.json                      ends, group offsets, coordinator states at quiescence
                                       (`verification.vocabulary.quiescent_state`)
    transaction_log.jsonl.gz           records of `__transaction_state` (`verification.evidence.transaction_log_file`)
    counts.jsonl.gz                    keys and counts of outputs that count (`verification.evidence.counts_file`)
    peer.jsonl.gz                      copies on a pipeline's second cluster (`verification.evidence.peer_file`)
    log/ uncommitted/ committed/       Parquet, schemas in `verification.sources.schema`
    brokers/broker-<i>.log
    findings/<anomaly>/                every violation with its records
    verdicts.json                      the judgement (`verification.vocabulary.verdict`)
    README.txt                         how to run it again, the use of each file

The directory of a whole run has `runs/<scenario>/` with these, next to its report in all formats
(`reports.formats.write`).

A protocol case leaves one file, `script.json` (`verification.scripts.script`), in its own directory. The directory of a
protocol run has `runs/<case>/`. A directory that holds both kinds is read as both.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

#: The possible contents of a scenario's directory, in the order in which people see them.
CONTENTS = (
    ("README.txt", "how to run it again, the use of each file"),
    ("scenario.json", "what was tried"),
    ("history.jsonl", "operations with their answers, faults, phases, samples"),
    ("verdicts.json", "the judgement"),
    ("captures.json", "ends and coordinator states at quiescence"),
    ("transaction_log.jsonl.gz", "records of __transaction_state"),
    ("counts.jsonl.gz", "keys and running counts of the outputs of a pipeline that counts"),
    ("peer.jsonl.gz", "ends, copies of inputs and markers on a pipeline's second cluster"),
    ("acks", "each record's acknowledgement"),
    ("observations", "records that live observers received"),
    ("log", "every record and control record by offset, Parquet"),
    ("uncommitted", "records that a read_uncommitted consumer received, Parquet"),
    ("committed", "records that a read_committed consumer received, Parquet"),
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
        """A path of this directory as Spark receives it."""
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
        """Directory of the records that live observers received."""
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
    def counts(self) -> Path:
        """counts.jsonl.gz."""
        return self.root / "counts.jsonl.gz"

    @property
    def peer(self) -> Path:
        """peer.jsonl.gz."""
        return self.root / "peer.jsonl.gz"

    @property
    def log(self) -> Path:
        """Parquet of every record and control record by offset."""
        return self.root / "log"

    @property
    def uncommitted(self) -> Path:
        """Parquet of the records that a read_uncommitted consumer received at quiescence."""
        return self.root / "uncommitted"

    @property
    def committed(self) -> Path:
        """Parquet of the records that a read_committed consumer received at quiescence."""
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


#: The file that a protocol case leaves.
SCRIPT = "script.json"
#: The plan, options and rule of a whole run (`reports.model.run_record`).
RUN_RECORD = "run.json"


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


def run_record_of(path: Path) -> Path:
    """run.json of a whole run, or of the run that the directory of a scenario or case lies in; it need not exist."""
    alone = _is_scenario(path) or (path / SCRIPT).exists()
    return (path.parent.parent if alone and path.parent.name == "runs" else path) / RUN_RECORD


def case_directories(path: Path) -> tuple[Path, ...]:
    """The directories of the cases of a protocol run, or the one that `path` is itself; empty when it is neither."""
    if (path / SCRIPT).exists():
        return (path,)
    return tuple(each for each in _below(path) if (each / SCRIPT).exists())
