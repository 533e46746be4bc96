"""Links between the files and headings of all Markdown of the repository lead somewhere.

Anchors are made of headings as GitHub makes them. Links to other machines are not followed: tests need no network.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.support.blocks import ROOT, markdown_files
from tests.support.cases import for_each

_ANCHOR = re.compile(r'<a (?:id|name)="([^"]+)">')


def _tokens(text: str) -> Iterator[Token]:
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        yield token
        yield from token.children or ()


def anchors_of(text: str) -> set[str]:
    """The anchors of a page: GitHub's of its headings, and anchors that are written as HTML."""
    seen: Counter[str] = Counter()
    anchors = set()
    is_heading = False
    for token in _tokens(text):
        if token.type == "heading_open":
            is_heading = True
        elif token.type == "inline" and is_heading:
            title = "".join(child.content for child in token.children or () if child.type in ("text", "code_inline"))
            slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            anchors.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
            seen[slug] += 1
            is_heading = False
        elif token.type in ("html_block", "html_inline"):
            anchors.update(_ANCHOR.findall(token.content))
    return anchors


def links_of(text: str) -> list[str]:
    """The targets of links and images."""
    targets = [token.attrs.get("href") or token.attrs.get("src") for token in _tokens(text)]
    return [str(target) for target in targets if target]


def broken_links(name: str, text: str) -> list[str]:
    """The links of a page that lead nowhere."""
    broken = []
    for target in links_of(text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = unquote(target).partition("#")
        file = (ROOT / name).parent / path if path else ROOT / name
        if not file.exists() or not file.resolve().is_relative_to(ROOT):
            broken.append(f"{target}: there is no such file")
        elif anchor and file.suffix == ".md" and anchor not in anchors_of(file.read_text() if path else text):
            broken.append(f"{target}: there is no such heading")
    return broken


@for_each("name", markdown_files())
def test_links_lead_to_files_and_headings(name: str) -> None:
    assert broken_links(name, (ROOT / name).read_text(encoding="utf-8")) == []


def test_all_pages_are_looked_at() -> None:
    assert {"README.md", "docs/operations.md", "compat/README.md"} <= set(markdown_files())


def test_a_broken_link_is_found() -> None:
    text = (
        "# A `b` heading, twice\n\n## Twice\n\n## Twice\n\n[](#a-b-heading-twice) [](#twice-1) [](#twice-2) [](no.md)\n"
    )
    text += "[](LICENSE) [](https://localhost/x) ![](docs/no.svg) [](docs/skipped.md#no) [](../x)\n"
    text += "\n| [](no2.md) |\n|---|\n"
    assert [line.partition(":")[0] for line in broken_links("README.md", text)] == [
        "#twice-2", "no.md", "docs/no.svg", "docs/skipped.md#no", "../x", "no2.md",
    ]  # fmt: skip
