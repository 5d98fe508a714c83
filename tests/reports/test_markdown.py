"""Texts from outside in `summary.md`: GitHub's own Markdown parser finds them as literal text, and nothing else.

Mentions, references and emoji are no matter of the parser. GitHub and GitLab look for them in finished text that is not
code, so they must not be there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from cmarkgfm import markdown_to_html_with_extensions
from cmarkgfm.cmark import Options
from hypothesis import given
from hypothesis import strategies as st

from reports.formats import summary
from reports.formats.markdown import code, literal, strong
from reports.loading.run import load_run
from reports.model.wording import one_line
from tests.reports.test_protocol_run import hostile_script
from tests.support.protocol_run_directories import make_protocol_run
from tests.support.rendered_runs import HOSTILE, READABLE, hostile_run

#: Elements that a summary is made of.
OURS = {"h2", "h3", "p", "ul", "li", "strong", "code", "br", "table", "thead", "tbody", "tr", "th", "td"}
TEXTS = (
    "<img src=x onerror=alert(1)>",
    "<!-- hidden --> seen",
    "![picture](https://tracker.example/p.png)",
    "[text](https://evil.example) [text][1] [1]: https://evil.example",
    "see https://evil.example, www.evil.example. and <https://evil.example>",
    "mail a@evil.example",
    "cc @user and @org/team (@user), '@user'",
    "#1 org/repo#1 GH-1 !1 $1 ~label %milestone &1 ^alert#1 KB-1",
    "commit 0123456789abcdef0123456789abcdef01234567 or 0123abc",
    "`code` ``code`` ``` ```` `",
    "``` fence",
    "~~~ fence",
    "a | b || c\\|d \\",
    "|",
    "\\`<b>\\`",
    "# heading",
    "> quote",
    "- item",
    "+ item",
    "* item * * *",
    "1. item",
    "1) item",
    "---",
    "===",
    "*emphasis* __strong__ ~~gone~~ **b",
    "&lt;b&gt; &#60; &amp; &nbsp;",
    ":smile: :+1: a:b:c",
    "[^1] footnote [^1]: text",
    "[ ] open [x] done",
    "$x$ $$y$$ $`z`$",
    "/close",
    "first\n\n# second\r\n> third\u2028- fourth",
    HOSTILE,
)
#: Texts that GitHub or GitLab makes links, pictures or commands of, also without markup.
MAGIC = re.compile(
    r"@\w|#\w|[!$~%&^]\w|\bgh-\d|:[\w+-]+:|://|\bwww\.|\w\.[a-z]|\b[0-9a-f]{7,40}\b|\[|(?:^|\s)/\w|[`*_<>|]",
    re.IGNORECASE | re.ASCII,
)


class Elements(HTMLParser):
    """The elements of a rendered text, its text, and its text outside of code."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.text = ""
        self.prose = ""
        self.codes: list[str] = []
        self._in_code = False
        # Raw HTML stays, so that it is seen here; footnotes are on, as on both sites.
        options = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_FOOTNOTES
        extensions = ["table", "autolink", "strikethrough", "tasklist"]
        self.feed(markdown_to_html_with_extensions(markdown, options=options, extensions=extensions))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep its name and its attributes."""
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        self._in_code = tag == "code"
        if self._in_code:
            self.codes.append("")

    def handle_endtag(self, tag: str) -> None:
        """Code has no elements within."""
        self._in_code = False

    def handle_data(self, data: str) -> None:
        """Text, and whether it is code."""
        self.text += data
        if self._in_code:
            self.codes[-1] += data
        else:
            self.prose += data

    def handle_comment(self, data: str) -> None:
        """A comment of ours does not exist."""
        self.tags.append("comment")


def unlike_prose(prose: str) -> list[str]:
    """The parts of prose that a site would make something of; a pipe is allowed, between two pieces of code."""
    return [each for each in MAGIC.findall(prose) if each != "|"]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("around", ["{}", "- {}", "### {}", "- and\n  {}", "| a |\n|---|\n| {} |"])
@pytest.mark.parametrize("write", [literal, code, strong])
def test_a_hostile_text_is_only_text(write: Callable[[str], str], around: str, text: str) -> None:
    """No element but ours, nothing that a site would act on, and the text is readable to the last character."""
    found = Elements(around.format(write(text)))
    assert set(found.tags) <= OURS
    assert not found.attributes
    assert one_line(text) in found.text
    assert not unlike_prose(found.prose)
    bare = Elements(around.format("word"))
    assert [each for each in found.tags if each not in ("code", "strong")] == bare.tags


@given(st.text(alphabet="ab1@#!$~%&^:/.,;|\\`*_<>[]()'\"{}+-= \n\u00e9\u2028", max_size=30))
def test_any_text_is_only_text(text: str) -> None:
    """The same for generated texts in a cell of a table, the place with the most rules."""
    for write in (literal, code):
        found = Elements(f"| a |\n|---|\n| {write(text)} |")
        assert [each for each in found.tags if each != "code"] == ["table", "thead", "tr", "th", "tbody", "tr", "td"]
        assert one_line(text) in found.text
        assert not unlike_prose(found.prose)


def test_sentences_stay_prose() -> None:
    """Names and numbers of ordinary sentences carry no markup; paths, addresses and identifiers are code."""
    for plain in ("it ended, at 4.3.1 (local); fine.", "12 of 50 operations: read-committed!", "2026-11-21 21:32 UTC"):
        assert literal(plain) == plain
    assert literal("see runs/a.log (KB-16): 'X_Y'") == "see `runs/a.log` (`KB-16`): '`X_Y`'"


@pytest.mark.parametrize("text", [*TEXTS[:-1], READABLE])
def test_a_summary_has_only_elements_of_ours(tmp_path: Path, text: str) -> None:
    """A run whose every text is hostile has the elements of a run whose texts are harmless."""
    report, _ = hostile_run(tmp_path / "hostile", text)
    harmless, _ = hostile_run(tmp_path / "harmless", "harmless")
    found = Elements(summary.render(report))
    assert set(found.tags) <= OURS
    assert not found.attributes
    kept = [each for each in found.tags if each != "code"]
    assert kept == [each for each in Elements(summary.render(harmless)).tags if each != "code"]
    assert not unlike_prose(found.prose)
    # The command of the run and of the scenario, the reason and the id are readable.
    assert f"Re-run: {one_line(text)}" in found.text
    assert f"re-run: {one_line(text)}" in found.text
    assert found.text.count(one_line(text)) >= 10


@pytest.mark.parametrize("text", TEXTS)
def test_a_summary_of_cases_has_only_elements_of_ours(tmp_path: Path, text: str) -> None:
    """The same for a protocol run with a hostile claim, requirement, answer and command."""
    run = make_protocol_run(tmp_path / "run", (hostile_script(text),), command=text)
    found = Elements(summary.render(load_run(run)))
    assert set(found.tags) <= OURS
    assert not found.attributes
    assert not unlike_prose(found.prose)
    assert one_line(text) in found.text
