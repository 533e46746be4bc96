"""The form of all pages: one sentence a line.

A sentence that is wider than a line goes on in the next one, if possible after a comma, a colon or a semicolon.
Inline code, links, blocks of code and tables stay as they are.
`python -m scripts.pages.prose PAGE...` brings pages into this form; a test checks it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

WIDTH: Final = 120
_WHOLE: Final = re.compile(r"`+[^`]*`+|!?\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])?")
"""Text that stays in one line: code and links."""
_END: Final = re.compile(r"[.!?][\"')*]*\s+(?=[A-Z`\[*\"(\0])")
_NOT_AN_END: Final = re.compile(r"(?:\b(?:e\.g|i\.e|vs|cf|No)\.|\.\.\.|^\*\*\w+\.)\s+$")
"""Abbreviations, dots, and the number of a rule: `**R1. `."""
_LIKE_MARKUP: Final = re.compile(r"(?:[-+*>#|]|\d+[.)])(?:\s|$)")
"""The beginning of a line that Markdown would take for a list, a quotation or a heading."""
_ITEM: Final = re.compile(r" *(?:[-*+]|\d+\.) +")
_LEFT_ALONE: Final = re.compile(r" *(?:[#|><]|\[[^\]]+\]:|$)")
"""Headings, rows of tables, quotations, HTML, targets of links, empty lines."""


def sentences(text: str) -> Iterator[str]:
    """The sentences of a paragraph, each in one line."""
    text = " ".join(text.split())
    masked = _WHOLE.sub(lambda match: "\0" * len(match[0]), text)
    start = 0
    for end in _END.finditer(masked):
        if not _NOT_AN_END.search(masked[start : end.end()]):
            yield text[start : end.end()].strip()
            start = end.end()
    if text[start:].strip():
        yield text[start:].strip()


def paragraph(text: str, first: str = "", rest: str = "") -> str:
    """The lines of a paragraph; `first` is in front of the first line (as `- `), `rest` in front of the others."""
    lines: list[str] = []
    for sentence in sentences(text):
        for line in _divided(sentence, WIDTH - max(len(first), len(rest))):
            lines.append((rest if lines else first) + line)
    return "\n".join(lines)


def _divided(sentence: str, width: int) -> Iterator[str]:
    while len(sentence) > width:
        masked = _WHOLE.sub(lambda match: "x" * len(match[0]), sentence)
        places = [
            place.end()
            for place in re.finditer(r" ", masked)
            if place.end() <= width + 1 and not _LIKE_MARKUP.match(sentence[place.end() :])
        ]
        if not places:
            places = [place.end() for place in re.finditer(r" ", masked)][:1]
            if not places:
                break
        clauses = [place for place in places if place > width // 2 and sentence[place - 2] in ",;:"]
        place = (clauses or places)[-1]
        yield sentence[:place].rstrip()
        sentence = sentence[place:]
    yield sentence


def format_page(page: str) -> str:
    """The page of Markdown with one sentence a line."""
    lines = page.split("\n")
    formatted: list[str] = []
    at = 0
    while at < len(lines):
        end = _end_of_block(lines, at)
        line = lines[at]
        is_code = line.startswith("    ") and at > 0 and not lines[at - 1]
        if _is_text(line) and not is_code:
            item = _ITEM.match(line)
            first = item[0] if item else line[: len(line) - len(line.lstrip())]
            text = " ".join([line[len(first) :], *lines[at + 1 : end]])
            formatted.append(paragraph(text, first, " " * len(first)))
        else:
            formatted += lines[at:end]
        at = end
    return "\n".join(formatted)


def _is_text(line: str) -> bool:
    return not _LEFT_ALONE.match(line) and not line.lstrip().startswith("```")


def _end_of_block(lines: list[str], start: int) -> int:
    """The line behind a paragraph, an item of a list, a block of code, a comment or any other line."""
    line = lines[start].lstrip()
    end = start + 1
    if line.startswith("```"):
        fence = re.match("`+", line)
        assert fence is not None
        while lines[end - 1].strip() != fence[0] or end == start + 1:
            end += 1
    elif line.startswith("<!--"):
        while "-->" not in lines[end - 1]:
            end += 1
    elif _is_text(line):
        while end < len(lines) and _is_text(lines[end]) and not _ITEM.match(lines[end]):
            end += 1
    return end


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(format_page(path.read_text(encoding="utf-8")), encoding="utf-8")
