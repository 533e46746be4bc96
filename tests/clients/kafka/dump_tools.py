"""Runs Kafka's kafka-dump-log and `barnabas dump-log` on the same files and compares their output."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from barnabas.cli import main
from tests.support.jvm.kafka_tools import run_tool


class Dump:
    """The output of a tool, and the problems it reported."""

    def __init__(self, text: str, problems: list[str]) -> None:
        self.text = text
        self.problems = problems

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def offsets(self) -> list[int]:
        return [int(offset) for offset in re.findall(r"^\| offset: (\d+)", self.text, re.MULTILINE)]


def kafkas_dump(files: list[Path], *options: str) -> Dump:
    """Run Kafka's tool. Its message that a file does not follow offset -1 is not counted as a problem."""
    done = run_tool("DumpLogSegments", "--files", ",".join(map(str, files)), *options)
    assert done.code == 0, done.errors
    problems = done.errors.splitlines()
    for at, line in reversed(list(enumerate(problems))):
        if re.fullmatch(r"  -1 is followed by \d+", line):
            del problems[at - 1 : at + 1]
    return Dump(_without_credentials(done.out), problems)


def _without_credentials(text: str) -> str:
    """Kafka's tool shows the credentials of SCRAM users; ours hides them."""
    return re.sub(r'"(salt|storedKey|serverKey)":"[^"]*"', r'"\1":"[hidden]"', text)


def our_dump(files: list[Path], *options: str) -> Dump:
    out, problems = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(problems):
        code = main(["dump-log", "--files", ",".join(map(str, files)), *options])
    assert code == (1 if problems.getvalue() else 0)
    return Dump(out.getvalue(), problems.getvalue().splitlines())


def both_agree(files: list[Path], *options: str) -> Dump:
    """Run both tools: neither reports a problem, and their lines are equal."""
    assert files
    theirs, ours = kafkas_dump(files, *options), our_dump(files, *options)
    assert theirs.problems == []
    assert ours.problems == []
    assert ours.lines == theirs.lines
    return theirs


def files_of(directory: Path, *suffixes: str) -> list[Path]:
    return sorted(path for path in directory.iterdir() if path.suffix in suffixes)
