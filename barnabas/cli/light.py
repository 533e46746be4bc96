"""Reading options without click, for `serve`: a table of options in, a dict of texts out.

Understands `--name value`, `--name=value` and flags; every mistake is one sentence (`UsageError`).
"""

from __future__ import annotations

from collections.abc import Sequence


class UsageError(Exception):
    """The command line cannot be understood; the text is one sentence for the person who wrote it."""


class Option:
    """One option: its name, what its value stands for (empty for a flag), and what it means."""

    __slots__ = ("choices", "metavar", "name", "repeatable", "text")

    def __init__(
        self, name: str, metavar: str, text: str, *, repeatable: bool = False, choices: tuple[str, ...] = ()
    ) -> None:
        self.name = name
        self.metavar = metavar
        self.text = text
        self.repeatable = repeatable
        self.choices = choices


def read_options(options: Sequence[Option], arguments: Sequence[str]) -> dict[str, list[str]]:
    """Read `arguments` by the table; the values of each option that was given, in order, by option name."""
    known = {option.name: option for option in options}
    given: dict[str, list[str]] = {}
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        option = known.get(name)
        if option is None:
            raise UsageError(_unknown(argument, name, known))
        if not option.metavar:
            if equals:
                raise UsageError(f"{name} takes no value")
            given[name] = [""]
            continue
        if not equals:
            following = next(rest, None)
            if following is None:
                raise UsageError(f"{name} needs a value: {name} {option.metavar}")
            value = following
        _check(option, value, given)
        given.setdefault(name, []).append(value)
    return given


def _check(option: Option, value: str, given: dict[str, list[str]]) -> None:
    if option.name in given and not option.repeatable:
        raise UsageError(f"{option.name} is given twice")
    if option.choices and value not in option.choices:
        raise UsageError(f"{option.name} is one of {', '.join(option.choices)}, not {value!r}")
    if not value:
        raise UsageError(f"{option.name} needs a value: {option.name} {option.metavar}")


def _unknown(argument: str, name: str, known: dict[str, Option]) -> str:
    if not argument.startswith("-"):
        return f"there is no room for an argument here: {argument!r}"
    return f"no such option: {name}{suggestion(name, known)}"


def suggestion(word: str, known: Sequence[str] | dict[str, Option]) -> str:
    """`; did you mean x?` for the known word nearest to `word`, or nothing when none is near."""
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), 1, 0.6)
    return f"; did you mean {near[0]}?" if near else ""


def help_text(usage: str, about: str, options: Sequence[Option], epilogue: str = "") -> str:
    """The help page: usage, what the command is for, one line or more an option."""
    heads = [f"  {option.name} {option.metavar}".rstrip() for option in options]
    width = max(len(head) for head in heads) + 2
    lines = [f"Usage: {usage}", "", *_wrapped(about, 2, 98), "", "Options:"]
    for head, option in zip(heads, options, strict=True):
        text = _wrapped(option.text, width, 98)
        lines.append(head.ljust(width) + text[0].lstrip())
        lines.extend(text[1:])
    if epilogue:
        for paragraph in epilogue.split("\n\n"):
            lines += ["", *_wrapped(paragraph, 2, 98)]
    return "\n".join(lines) + "\n"


def _wrapped(text: str, indent: int, width: int) -> list[str]:
    lines: list[str] = []
    line = ""
    for word in text.split():
        if line and indent + len(line) + 1 + len(word) > width:
            lines.append(" " * indent + line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, " " * indent + line]
