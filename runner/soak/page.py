"""The page of a soak: what was run under which load, what nothing explains, and what ended in several ways."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from runner.resumable_matrix import markdown_table
from runner.soak.ledger import differing, run_of, unexplained


def render(lines: Sequence[dict[str, Any]]) -> str:
    """The page of all lines."""
    open_ = [sentence for line in lines for sentence in unexplained(line)]
    text = [
        "# Soak",
        "",
        "Equal runs again and again under different loads, written by `tox -e soak`. A verdict that nothing explains is a",
        "defect of this suite until proved otherwise.",
        "",
        f"**{len(lines)} runs, {len(open_)} verdicts without an explanation.**",
        "",
        "## Runs",
        "",
        *markdown_table(["what", "release", "load", "runs", "median s", "load average", "cases"], _runs(lines)),
        "",
        "## Without an explanation",
        "",
        *_listed(lines, explained=False),
        "",
        "## Explained",
        "",
        *_listed(lines, explained=True),
        "",
        "## Several outcomes",
        "",
        "Experiments of equal release, and of equal seed if they have one, that did not always end in one way. A known bug",
        "that is a race is no defect of this suite.",
        "",
        *markdown_table(["release", "experiment", "outcomes"], _outcomes(lines)),
    ]
    return "\n".join(text) + "\n"


def _runs(lines: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        groups[line["what"], line["release"], line["load"]].append(line)
    for key, group in sorted(groups.items()):
        loads = [line["load_average"] for line in group]
        cases = sum(sum(line.get("case_verdicts", {}).values()) for line in group)
        seconds = f"{median(line['seconds'] for line in group):.0f}"
        yield [*key, str(len(group)), seconds, f"{min(loads):.0f} to {max(loads):.0f}", str(cases)]


def _listed(lines: Sequence[dict[str, Any]], *, explained: bool) -> list[str]:
    found = [
        f"- {run_of(line).name}, {line['date']}, commit {line['commit']}: {sentence}"
        for line in lines
        for sentence in (_reasons(line) if explained else unexplained(line))
    ]
    return found or ["None."]


def _reasons(line: dict[str, Any]) -> list[str]:
    return [f"{key}: {reason}" for key, reason in line.get("explained", {}).items()]


def _outcomes(lines: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    for (release, key), outcomes in sorted(differing(lines).items()):
        yield [release, key, ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())]
