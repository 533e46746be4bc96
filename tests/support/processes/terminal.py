"""A terminal for tests: a program on a pseudo-terminal, and the screen that its output makes.

pexpect runs the program and types, pyte interprets the escape sequences. Nothing waits for a time: `wait_for` and
`to_end` wait for output or for the end, and only give up after `HANGS_S`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pexpect
import pyte

from tests.support.processes.commands import clean_environment

HANGS_S = 60
LINES = 50
COMMAND = Path(sys.executable).with_name("barnabas")
ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[()][A-Z0-9]|[=>78cM])")


class Terminal:
    """One program and its screen. Use as a context: the program is ended with it."""

    def __init__(
        self,
        program: str,
        *arguments: str,
        columns: int = 100,
        lines: int = LINES,
        env: Mapping[str, str] | None = None,
    ) -> None:
        environment = clean_environment() | {"TERM": "xterm-256color", "PATH": _path(), "LANG": "C.UTF-8"}
        environment.pop("COLUMNS", None)
        environment.pop("NO_COLOR", None)
        self.columns = columns
        self.raw = ""
        self.screen = pyte.HistoryScreen(columns, lines, history=10_000, ratio=1)
        self._stream = pyte.Stream(self.screen)
        self._child = pexpect.spawn(
            program,
            list(arguments),
            env=environment | dict(env or {}),
            dimensions=(lines, columns),
            encoding="utf-8",
            timeout=HANGS_S,
            echo=True,
        )

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *exception: object) -> None:
        self._child.close(force=True)

    def type(self, text: str) -> None:
        """Type a text; `\\r` is the Enter key, `\\t` the Tab key."""
        self._child.send(text)

    def resize(self, columns: int, lines: int) -> None:
        """Change the size of the terminal."""
        self.columns = columns
        self.screen.resize(lines, columns)
        self._child.setwinsize(lines, columns)

    def wait_for(self, text: str) -> None:
        """Wait until the text is on the screen."""
        while text not in self.text:
            self._read(f"{text!r} is not on the screen")

    def wait_until(self, pattern: str) -> re.Match[str]:
        """Wait until the pattern is on the screen; the match."""
        while (match := re.search(pattern, self.text)) is None:
            self._read(f"{pattern!r} is not on the screen")
        return match

    def to_end(self) -> int:
        """Wait until the program ends; its exit code."""
        while True:
            try:
                self._read("the program does not end")
            except EOFError:
                break
        self._child.close()
        status = self._child.exitstatus
        assert status is not None, f"ended by signal {self._child.signalstatus}"
        return int(status)

    @property
    def text(self) -> str:
        """The text of the screen and of its history, line by line; a line longer than the screen is several."""
        above = ["".join(line[at].data for at in range(self.columns)) for line in self.screen.history.top]
        return "\n".join(line.rstrip() for line in (*above, *self.screen.display)).rstrip()

    @property
    def written(self) -> list[str]:
        """The lines that the program wrote, without escape sequences; what was overwritten too."""
        return re.split(r"\r*\n|\r", ESCAPE.sub("", self.raw))

    def _read(self, failure: str) -> None:
        try:
            piece = self._child.read_nonblocking(65536, timeout=HANGS_S)
        except pexpect.EOF:
            raise EOFError(f"{failure}; the program ended after:\n{self.text}") from None
        except pexpect.TIMEOUT:
            raise AssertionError(f"{failure}, but:\n{self.text}") from None
        self.raw += piece
        self._stream.feed(piece)


def _path() -> str:
    return f"{COMMAND.parent}:/usr/local/bin:/usr/bin:/bin"
