"""Names on the command line that may be patterns: globs (`ord*`), or regular expressions with -r.

A regular expression must match the whole name, as in rpk. A name without `*`, `?` and `[` is no pattern: it is used as
it is, so that the broker says whether it exists.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate
from typing import Any, TypeVar

import click

from barnabas.cli.options.regex import compile_regex

Function = TypeVar("Function", bound=Callable[..., Any])


def regex_option(command: Function) -> Function:
    """`-r/--regex`: names are regular expressions."""
    return click.option(
        "-r",
        "--regex",
        is_flag=True,
        help="The names are regular expressions that match whole names; without it '*', '?' and '[...]' are wildcards.",
    )(command)


def is_pattern(name: str, *, regex: bool) -> bool:
    """Whether `name` may match several names."""
    return regex or any(character in name for character in "*?[")


def have_patterns(names: Iterable[str], *, regex: bool) -> bool:
    """Whether any of `names` is a pattern."""
    return any(is_pattern(name, regex=regex) for name in names)


def select(patterns: Sequence[str], known: Callable[[], Iterable[str]], *, regex: bool, kind: str) -> list[str]:
    """The names that are given or that match, each once; `NotFound` for a pattern without a match.

    `known` returns all names of that `kind`, and is called only if there is a pattern.
    """
    from barnabas.client.errors import NotFound

    if not have_patterns(patterns, regex=regex):
        return list(dict.fromkeys(patterns))
    names = list(known())
    selected: dict[str, None] = {}
    for pattern in patterns:
        if not is_pattern(pattern, regex=regex) or (not regex and pattern in names):
            selected[pattern] = None
            continue
        matches = _matcher(pattern, regex=regex)
        matching = [name for name in names if matches(name)]
        if not matching:
            raise NotFound(f"no {kind} matches {pattern!r}")
        selected.update(dict.fromkeys(matching))
    return list(selected)


def matching(patterns: Sequence[str], names: Iterable[str], *, regex: bool) -> list[str]:
    """Those of `names` that match any of `patterns`; all if there are none."""
    matchers = [_matcher(pattern, regex=regex) for pattern in patterns]
    return [name for name in names if not matchers or any(matches(name) for matches in matchers)]


def confirm(action: str, kind: str, names: Sequence[str], *, yes: bool, why: str, rest: str = "") -> None:
    """Ask on a terminal before something is done to `names`; `yes` does not ask.

    Where there is no terminal `yes` is needed, a usage error without it; `why` and the names are the reason.
    """
    what = f"{kind} {names[0]}" if len(names) == 1 else f"{len(names)} {kind}s ({', '.join(names)})"
    ask_or_refuse(f"{action} {what}{rest}?", f"{why} {what}", yes=yes)


def ask_or_refuse(question: str, why: str, *, yes: bool) -> None:
    """Ask before something is changed that cannot be undone; `yes` does not ask.

    Without a terminal and `yes` it is refused, as a usage error that begins with `why`.
    """
    from barnabas.terminal.question import ask
    from barnabas.terminal.screen import is_terminal

    if yes:
        return
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise click.UsageError(f"{why}; without a terminal to ask on, confirm it with -y")
    ask(question)


def _matcher(pattern: str, *, regex: bool) -> Callable[[str], object]:
    """Whether a name matches: truth of the result."""
    if not regex:
        return re.compile(translate(pattern)).fullmatch
    compiled = compile_regex(pattern, "-r")
    return lambda name: compiled.fullmatch(name.encode())
