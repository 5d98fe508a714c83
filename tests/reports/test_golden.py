"""The output files of real runs, byte for byte.

`tests/reports/golden/<name>/run` is the directory of a real run, reduced to a few scenarios or cases and to a part of
their histories; the scenario with a transaction log is from a later run. `expected/` has a digest of each output file,
and a readable excerpt: the file without untested requirements, of the page its text. Bless an intended change with

    ONCEPROOF_BLESS=1 tox -e unit -- tests/reports/test_golden.py

and review it like any other change of a file.
"""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from reports.formats import terminal
from reports.formats.write import write_all
from reports.loading.run import load_run
from tests.support.plans import Plan, found
from tests.support.run_directories import make_run
from verification.evidence.atomic_write import atomic_write
from verification.vocabulary.anomalies import DEFINITIONS, Anomaly
from verification.vocabulary.verdict import Verdict

GOLDEN = Path(__file__).parent / "golden"
DIGESTS = "sha256.json"
TERMINAL = "terminal"
BLESS = "ONCEPROOF_BLESS=1 tox -e unit -- tests/reports/test_golden.py"


def without_untested(text: str) -> str:
    """results.json without untested requirements."""
    body = json.loads(text)
    body["requirements"] = [each for each in body["requirements"] if each["decided_by"]]
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def without_skipped(text: str) -> str:
    """ctrf.json without the tests that were skipped."""
    body = json.loads(text)
    body["results"]["tests"] = [each for each in body["results"]["tests"] if each["status"] != "skipped"]
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def words_alone(text: str) -> str:
    """The text of report.html, line by line: no style sheet, no tags, no rows of untested requirements."""
    for left_out in (r"<style>.*?</style>", r'<tr [^>]*data-verdict="untested">.*?</tr>', r"<(?!/[td][dht]>)[^>]*>"):
        text = re.sub(left_out, "", text, flags=re.DOTALL)
    lines = (html.unescape(re.sub(r"</[td][dht]>", " | ", line)).strip(" |") for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines if line)


#: The readable excerpt of each output file; a file that is not here has only its digest.
EXCERPTS: Mapping[str, Callable[[str], str]] = {
    "results.json": without_untested,
    "ctrf.json": without_skipped,
    "junit.xml": lambda text: re.sub(r" *<testcase [^>]*>\s*<skipped [^>]*/>\s*</testcase>\n", "", text),
    "report.html": words_alone,
    "summary.md": str,
    "badge.json": str,
    TERMINAL: str,
}


def golden() -> list[Path]:
    """The runs that are kept."""
    return sorted(each for each in GOLDEN.iterdir() if each.is_dir())


def outputs_of(run: Path, directory: Path) -> dict[str, str]:
    """All output files of a copy of the run: a report is next to the evidence, where its links lead."""
    copy = directory / "run"
    shutil.copytree(run, copy)
    report = load_run(copy)
    written = write_all(report, copy)
    outputs = {path.name: path.read_text(encoding="utf-8") for path in written.files}
    return {**outputs, TERMINAL: terminal.render(report)}


def expected_of(outputs: Mapping[str, str]) -> dict[str, str]:
    """The files of `expected/` for these output files."""
    digests = {name: hashlib.sha256(text.encode("utf-8")).hexdigest() for name, text in sorted(outputs.items())}
    excerpts = {f"{name}.txt": cut(outputs[name]) for name, cut in EXCERPTS.items() if name in outputs}
    return {DIGESTS: json.dumps(digests, indent=1) + "\n", **excerpts}


@pytest.mark.parametrize("case", golden(), ids=lambda path: path.name)
def test_a_real_run_is_rendered_as_it_was(case: Path, tmp_path: Path) -> None:
    """Every output file has the blessed bytes; differences in text are shown before differences of digests."""
    now = expected_of(outputs_of(case / "run", tmp_path))
    if os.environ.get("ONCEPROOF_BLESS") == "1":
        shutil.rmtree(case / "expected", ignore_errors=True)
        (case / "expected").mkdir()
        for name, text in now.items():
            atomic_write(case / "expected" / name, text)
    kept = {path.name: path.read_text(encoding="utf-8") for path in (case / "expected").iterdir()}
    assert set(now) == set(kept), f"other files than were blessed; if that is meant: {BLESS}"
    for name in sorted(now, key=lambda each: each == DIGESTS):
        assert now[name] == kept[name], f"{name} of {case.name} changed; if that is meant: {BLESS}"


def test_a_changed_run_is_noticed(tmp_path: Path) -> None:
    """One changed sentence of a scenario changes the output files, so that equal files mean something."""
    (case,) = (each for each in golden() if each.name.startswith("scenarios"))
    shutil.copytree(case / "run", tmp_path / "changed")
    (path, *_) = sorted((tmp_path / "changed" / "runs").glob("*/scenario.json"))
    path.write_text(path.read_text(encoding="utf-8").replace("3 brokers", "4 brokers"), encoding="utf-8")
    now = expected_of(outputs_of(tmp_path / "changed", tmp_path / "faces"))
    assert now["report.html.txt"] != (case / "expected" / "report.html.txt").read_text(encoding="utf-8")
    assert now[DIGESTS] != (case / "expected" / DIGESTS).read_text(encoding="utf-8")


def test_every_anomaly_is_in_every_output_format(tmp_path: Path) -> None:
    """The page has name, definition and reason of an anomaly; other formats, terminal and summary have its name."""
    plans = [
        Plan(key=f"scenario-{number}", verdict=Verdict.FAIL, findings=(found(anomaly, count=1),))
        for number, anomaly in enumerate(Anomaly)
    ]
    outputs = outputs_of(make_run(tmp_path / "run", plans), tmp_path / "faces")
    page = html.unescape(outputs.pop("report.html"))
    # Neither the badge nor the trace has room for a name.
    del outputs["badge.json"], outputs["trace.json"]
    for anomaly in Anomaly:
        assert DEFINITIONS[anomaly].definition in page
        assert DEFINITIONS[anomaly].why_illegal in page
        for name, text in outputs.items():
            assert anomaly in text.replace("\\", ""), f"{name} does not say {anomaly}"
