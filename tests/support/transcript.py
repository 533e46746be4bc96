"""Transcripts in `tests/data/kafka-tools`: commands of Kafka's tools, and what the tools printed against Barnabas.

    # a comment
    % produce words 3                 a step that prepares something (steps.py)
    $ kafka-topics --bootstrap-server BROKER --list          a command; `$~`: its lines come in any order,
                                                              `$#`: numbers are not compared
    | words                           a line of stdout
    ! a message                       a line of stderr
    = 1                               the exit code, if it is not 0

What differs from run to run (ports, ids, times, directories) is replaced in the output by a word of the same length
where a column's width depends on it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "data" / "kafka-tools"
USAGE = re.compile(r"^(Option( \(.*\))?\s+Description|usage: |'barnabas .* --help')")
EXCEPTION = re.compile(r"^(?:java|joptsimple|org\.apache\.kafka|com\.fasterxml)\.[\w.$]+(?:: (.*))?$")
NOISE = re.compile(r"^(\s+at |Caused by: |\s+\.\.\. |The consumer rebalance protocol \(KIP-848\) is)")
"""Stack traces, and an advertisement."""
JAVA_SETS = re.compile(
    r"(?<=\()'[^']*'(?:, '[^']*')+(?=\))"  # ('b', 'a')
    r"|\[[\w-]+\](?:, \[[\w-]+\])+"  # [b], [a]
    r"|(?<= are: )[\w-]+(?:, [\w-]+)+"  # Valid states are: b, a
    r"|(?<=' are )[\w-]+=[\w.=]+(?:, [\w-]+=[\w.=]+)+"  # a=1, b=2
    r"|(?<= supports operations \[)\w+(?:, \w+)+"  # b, a
)
"""Sets, which are printed in no order."""
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
BASE64_ID = re.compile(r"(?<![\w.+/-])(?=[\w+/-]*[A-Z])(?=[\w+/-]*[a-z])[\w+/-]{22}(?![\w:.+/-])")
DURATION = re.compile(r"(TIME_MILLISEC +\t)(\d+ *)(?=\t)")
NEWER_THAN_TOOLS = re.compile(r" \[usable: \d+\],?|(?<=[nl]: )(?:UNKNOWN 33|4\.4-IV2) *|(?<=UNSUPPORTED),$")
NUMBER = re.compile(r"(?<![\w-])\d+(?:[-.:]\d+)*(?![\w-])")
NEWER_APIS = re.compile(r"\t\w+\(9[34]\): ")
"""What Kafka's tools of 4.3 do not know of 4.4."""
HMAC = re.compile(r"[A-Za-z0-9+/]{86}==")
MINUTE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d\b")
PASSWORD = re.compile(r"(?<=password=)[^],]+")
"""Kafka's tool shows the password when it fails, ours does not."""
MILLISECONDS = re.compile(r"(?<!\d)1[789]\d{11}(?!\d)")


@dataclass
class Output:
    """The output of a command: lines of stdout and stderr, and its exit code."""

    out: list[str]
    errors: list[str]
    code: int


@dataclass
class Step:
    """One entry of a transcript: a comment, a step that prepares something, or a command with its output."""

    line: str
    output: Output = field(default_factory=lambda: Output([], [], 0))

    @property
    def kind(self) -> str:
        return self.line[:1]

    @property
    def words(self) -> list[str]:
        """The words of a command or a step, without what follows `<<<`."""
        words = shlex.split(self.line[2:])
        return words[: words.index("<<<")] if "<<<" in words else words

    @property
    def stdin(self) -> str:
        """The text after `<<<`, with `\\n` and `\\t` as in Python."""
        words = shlex.split(self.line[2:])
        return words[-1].encode().decode("unicode_escape") if "<<<" in words else ""

    @property
    def is_unordered(self) -> bool:
        return self.line.startswith("$~")


def read(path: Path) -> list[Step]:
    """The steps of a transcript."""
    steps: list[Step] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        mark, text = line[:1], line[2:]
        if mark in {"|", "!", "="}:
            output = steps[-1].output
            if mark == "=":
                output.code = int(text)
            else:
                (output.out if mark == "|" else output.errors).append(text)
        else:
            steps.append(Step(line))
    return steps


def text_of(steps: Iterable[Step]) -> str:
    """The content of a transcript."""
    lines: list[str] = []
    for step in steps:
        lines.append(step.line)
        lines += [f"| {line}".rstrip() for line in step.output.out]
        lines += [f"! {line}".rstrip() for line in step.output.errors]
        if step.output.code:
            lines.append(f"= {step.output.code}")
    return "\n".join(lines) + "\n"


def fill(words: Iterable[str], values: Mapping[str, str]) -> list[str]:
    """Words of a command, with BROKER, DIR and TMP replaced by their values."""
    pattern = re.compile(r"\b(" + "|".join(values) + r")\b")
    return [pattern.sub(lambda match: values[match[1]], word) for word in words]


def normal(output: Output, step: Step, values: Mapping[str, str]) -> Output:
    """The output without what differs from run to run."""
    out = [_normal_line(line, values) for line in output.out if not NEWER_APIS.match(line)]
    if step.line.startswith("$#"):
        out = [NUMBER.sub("N", line) for line in out]
    if step.is_unordered:
        out = [line.removeprefix(" ") for line in out]  # the first of a set is indented by one more
    if any(line.startswith("Error while executing ACL command") for line in out):
        out = [line for line in out if line and not NOISE.match(line) and not EXCEPTION.match(line)]
    errors = [_normal_line(PASSWORD.sub("(hidden)", line), values) for line in _messages(output)]
    return Output(sorted(out) if step.is_unordered else out, errors, output.code)


def secrets(output: Output) -> dict[str, str]:
    """The HMAC of a new delegation token, by the word that stands for it in later commands."""
    match = next(filter(None, map(HMAC.search, output.out)), None)
    return {} if match is None else {"HMAC": match[0]}


def _messages(output: Output) -> list[str]:
    """The lines of stderr before the usage, without stack traces; if nothing was printed, an exception's message."""
    messages: list[str] = []
    exceptions: list[str] = []
    for line in output.errors:
        if USAGE.match(line):
            break
        exception = EXCEPTION.match(line)
        if exception is not None:
            exceptions.append(exception[1] or "")
        elif not NOISE.match(line) and line.strip():
            messages.append(line)
    return messages or ([] if output.out else exceptions[:1])


def _normal_line(line: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        line = line.replace(value, name)
    port = values["BROKER"].rpartition(":")[2]
    line = re.sub(rf"(?<!\d){port}(?!\d)", "PORT_", line)
    line = JAVA_SETS.sub(lambda match: ", ".join(sorted(match[0].split(", "))), line)
    line = UUID.sub(lambda match: "u" * len(match[0]), line)
    line = BASE64_ID.sub(lambda match: "i" * len(match[0]), line)
    line = MINUTE.sub(lambda match: "m" * len(match[0]), line)
    line = MILLISECONDS.sub("TIME_MILLISEC", line)
    line = DURATION.sub(lambda match: match[1] + "DURATION_MS".ljust(len(match[2])), line)
    return NEWER_THAN_TOOLS.sub("", line).rstrip()
