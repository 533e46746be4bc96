"""Asks before something is lost, and for secrets: only on a terminal, so that no script waits for an answer."""

from __future__ import annotations

import sys

from barnabas.terminal.layout import wrap
from barnabas.terminal.screen import width


class Declined(Exception):  # noqa: N818 (a condition, named as such)
    """The answer was no."""


def ask(question: str) -> None:
    """Ask a question with the default no; `Declined` unless it is answered with yes.

    The caller has made sure that stdin and stderr are a terminal.
    """
    sys.stderr.write("\n".join(wrap(f"{question} [y/N]", width(sys.stderr) - 2)) + " ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        sys.stderr.write("\n")  # the end of the input (Ctrl-D) leaves the cursor behind the question
    if answer.strip().lower() not in ("y", "yes"):
        raise Declined("nothing was changed")


def ask_secret(question: str) -> str:
    """Ask twice for a text that is not shown while it is typed; `Declined` if the two differ, or none is typed.

    The caller has made sure that stdin and stderr are a terminal.
    """
    from getpass import getpass

    try:
        text = getpass(f"{question}: ", sys.stderr)
        again = getpass(f"{question}, again: ", sys.stderr)
    except EOFError:
        raise Declined("nothing was changed") from None
    if again != text:
        raise Declined("the two are not the same; nothing was changed")
    return text
