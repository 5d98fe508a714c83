"""Tables of requirements in the pages of matrices: a row for each requirement, a column for each run.

Each run keeps its requirements in its stored line, as `results_of` makes them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runner.given.options import DEFAULT_PREFIX
from runner.resumable_matrix import markdown_table
from verification.requirements.catalogue import FAMILIES, load
from verification.vocabulary.verdict import NOT_IMPLEMENTED, Verdict

NOT_TRIED = "not tried"
_BY_VERDICT = {
    Verdict.PASS.name: "passes",
    Verdict.FAIL.name: "**fails**",
    Verdict.INCONCLUSIVE.name: "not decided",
    Verdict.ERROR.name: "not decided",
}
#: The words of cells, in the order of a summary.
WORDS = (*dict.fromkeys(_BY_VERDICT.values()), NOT_IMPLEMENTED, NOT_TRIED)
#: Longer ones are lists of codes; the evidence of the run has them whole.
REASON_MAX = 200
_NAME_OF_RUN = re.compile(rf"{DEFAULT_PREFIX}[0-9a-f]{{12}}-")

#: One run as it is stored: its `requirements` by id, and a `name`.
Line = Mapping[str, Any]


def results_of(results: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The requirements of a `results.json`: the word of each cell, and for a failure its first case and the reason."""
    return {each["id"]: _result(each) for each in results["requirements"]}


def _result(requirement: Mapping[str, Any]) -> dict[str, str]:
    decided = requirement["decided_by"]
    if requirement["verdict"] == Verdict.NOT_APPLICABLE.name:
        lacking = any(each["reason"].startswith(NOT_IMPLEMENTED) for each in decided)
        return {"word": NOT_IMPLEMENTED if lacking else NOT_TRIED}
    word = _BY_VERDICT.get(requirement["verdict"] or "", NOT_TRIED)
    failed = next((each for each in decided if each["verdict"] == Verdict.FAIL.name), None)
    return {"word": word} | ({"case": failed["id"], "reason": failed["reason"]} if failed else {})


def counts(line: Line) -> list[str]:
    """The number of requirements of each of WORDS."""
    counted = Counter(each["word"] for each in line["requirements"].values())
    return [str(counted[word]) for word in WORDS]


def tables(lines: Sequence[Line]) -> Iterator[str]:
    """A table for each family, with the requirements that were tried in some run."""
    for family in FAMILIES:
        rows = []
        for each in load().values():
            cells = [line["requirements"].get(each.id, {}).get("word", NOT_TRIED) for line in lines]
            if each.family == family and set(cells) != {NOT_TRIED}:
                rows.append([f"`{each.id}`", *cells])
        if rows:
            heads = ["requirement", *(line["name"] for line in lines)]
            yield from (f"## {family}", "", *markdown_table(heads, rows), "")


def failures(line: Line) -> Iterator[str]:
    """The failed requirements of a run, each with its first case and the reason; nothing without one."""
    failed = {name: each for name, each in line["requirements"].items() if "case" in each}
    if failed:
        rows = ([f"`{name}`", f"`{each['case']}`", text_of(each["reason"])] for name, each in failed.items())
        table = markdown_table(["requirement", "case", "seen"], rows)
        yield from (f"## Failures of {line['name']}", "", *table, "")


def text_of(reason: str) -> str:
    """A reason in a cell, without the names of one run."""
    text = _NAME_OF_RUN.sub("", " ".join(reason.split())).replace("|", "\\|")
    return text if len(text) <= REASON_MAX else f"{text[:REASON_MAX]} …"
