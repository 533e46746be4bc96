"""The code blocks of a Markdown page, with the markers that say how each is tested.

A marker is an HTML comment right above a block, which readers do not see: `<!-- test: HOW -->`. HOW is one of

    background          a shell block that serves the port, until the next such block or the end of the page
    file NAME           is written to NAME in the directory of the page
    same as PATH        has the content of that file of the repository
    output              is the output of the block before, with `...` for any lines or any text in a line
    prints TEXT         this is in the output of the block
    fails TEXT          the block ends with another exit code than 0, and this is in its output
    steps               YAML of a CI service: its shell steps are run
    targets REASON      make's targets: they exist, and are not run because of the reason
    soak REASON         is run by a test marked `soak` only, because of the reason
    skip REASON         is not run, because of the reason

Shell, Python and console blocks without a marker are run; TOML, YAML and JSON blocks without one are parsed. Any other
block without a marker is a mistake. `<!-- test: setup` and further lines are a shell block that readers do not see.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

RUN = {"sh", "console", "python"}
PARSED = {"toml", "yaml", "json", "mermaid"}
"""Mermaid's diagrams are on generated pages only, next to the tables that they are made from."""
WITH_ARGUMENT = {"file", "same", "prints", "fails", "targets", "soak", "skip"}
WITHOUT_ARGUMENT = {"background", "output", "steps", "setup"}
_COMMENT = re.compile(r"<!-- test: (\w+)(.*?)-->", re.DOTALL)


class PageError(Exception):
    """A block or a marker that cannot be tested as it is written."""


@dataclass(frozen=True)
class Block:
    """One code block: its first line in the page, its language, its text, and how it is tested."""

    page: str
    line: int
    language: str
    text: str
    how: str
    argument: str = ""

    @property
    def place(self) -> str:
        """`page:line`, for messages."""
        return f"{self.page}:{self.line}"


def parse_blocks(text: str, name: str) -> list[Block]:
    """The blocks of a page in their order. PageError if one needs a marker and has none, or a marker has no block."""
    blocks: list[Block] = []
    marker: tuple[int, str, str] | None = None
    for token in MarkdownIt("commonmark").parse(text):
        if token.type == "html_block" and (comment := _COMMENT.search(token.content)):
            if marker is not None:
                raise PageError(f"{name}:{marker[0]}: there is no block below the marker {marker[1]!r}")
            marker = (_line(token), comment[1], comment[2])
            if marker[1] == "setup":
                blocks.append(Block(name, marker[0], "sh", marker[2].strip() + "\n", "setup"))
                marker = None
        elif token.type == "fence":
            blocks.append(_block(name, token, marker))
            marker = None
        elif token.type == "code_block":
            raise PageError(f"{name}:{_line(token)}: an indented block says no language: use a fence")
        elif marker is not None and token.nesting >= 0 and token.type not in ("list_item_open", "inline"):
            raise PageError(f"{name}:{marker[0]}: there is no block below the marker {marker[1]!r}")
    if marker is not None:
        raise PageError(f"{name}:{marker[0]}: there is no block below the marker {marker[1]!r}")
    return blocks


def _line(token: Token) -> int:
    assert token.map is not None
    return token.map[0] + 1


def _block(name: str, token: Token, marker: tuple[int, str, str] | None) -> Block:
    language, line = token.info.strip(), _line(token)
    if marker is None:
        if language not in RUN | PARSED:
            raise PageError(f"{name}:{line}: a block in {language or 'no language'!r} needs a marker")
        return Block(name, line, language, token.content, "run" if language in RUN else "parse")
    how, argument = marker[1], " ".join(marker[2].split())
    if how not in WITH_ARGUMENT | WITHOUT_ARGUMENT:
        raise PageError(f"{name}:{line}: there is no marker {how!r}")
    if (how in WITH_ARGUMENT) != bool(argument):
        raise PageError(f"{name}:{line}: the marker {how!r} needs {'an' if how in WITH_ARGUMENT else 'no'} argument")
    if how in ("skip", "soak", "targets") and len(argument.split()) < 3:
        raise PageError(f"{name}:{line}: the marker {how!r} needs a reason, not {argument!r}")
    return Block(name, line, language, token.content, how, argument)


ROOT = Path(__file__).resolve().parents[2]


def markdown_files() -> list[str]:
    """The paths of all pages, from the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False).stdout.split()
    names = listed or [str(path.relative_to(ROOT)) for path in ROOT.glob("[!.]*/**/*.md")]
    return sorted(name for name in names if (ROOT / name).exists())
