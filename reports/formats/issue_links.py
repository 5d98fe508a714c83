"""Links from KIPs and issues in the texts of a page to where they are public.

Catalogues and known bugs name many of them in the middle of sentences. So the finished page is searched, not each text.
Links, commands, charts and the head of the page stay as they are. In each section, article and fold an id is a link
once: KIP-98 alone is named in a hundred requirements.
"""

from __future__ import annotations

import re

#: The wiki has a page of every KIP under its full title. A search finds it by its number alone.
KIP_SEARCH = "https://cwiki.apache.org/confluence/dosearchsite.action?where=KAFKA&amp;queryString="
JIRA_ISSUE = "https://issues.apache.org/jira/browse/"
LIBRDKAFKA_ISSUE = "https://github.com/confluentinc/librdkafka/issues/"

_NAMED = re.compile(
    r"<(?P<within>head|a|svg|code)\b.*?</(?P=within)>|(?P<part><(?:section|article|details)\b[^>]*>)|<[^>]*>"
    r"|\b(?:(?P<kip>KIP-[0-9]+)|(?P<issue>KAFKA-[0-9]+)|librdkafka#(?P<number>[0-9]+))\b",
    re.DOTALL,
)


def linked(page: str) -> str:
    """The page with a link on every KIP and issue in its text, once in each part."""
    done: set[str] = set()

    def link(found: re.Match[str]) -> str:
        if found["part"]:
            done.clear()
        address = _address(found)
        if not address or address in done:
            return found[0]
        done.add(address)
        return f'<a href="{address}">{found[0]}</a>'

    return _NAMED.sub(link, page)


def _address(found: re.Match[str]) -> str:
    if found["kip"]:
        return KIP_SEARCH + found["kip"]
    if found["issue"]:
        return JIRA_ISSUE + found["issue"]
    return LIBRDKAFKA_ISSUE + found["number"] if found["number"] else ""
