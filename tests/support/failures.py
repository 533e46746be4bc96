"""Collects the failures of many cases of one test, so that a failure of one does not hide the others.

    with Failures() as failures:
        for version in versions:
            with failures.case(f"version {version}"):
                assert ...

An exception of a case is kept, and at the end one AssertionError names every case that failed; with `-x` or
`--maxfail` it does so earlier. What ends the test, as a timeout or Ctrl-C, is not kept. A case that is skipped makes
the test a skipped one, unless another case fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

import pytest

MOST_SHOWN = 20
"""Of how many failures the traceback is shown; of the others only the names are."""
_TIMEOUT = "from pytest-timeout"
_ends_after: int | None = None
"""With how many failures a test ends: what `-x` and `--maxfail` say, since each case could be a test of its own."""


def pytest_configure(config: pytest.Config) -> None:
    """As a plugin: read the options of the run."""
    global _ends_after  # noqa: PLW0603 - of the process, as the options are
    _ends_after = config.getoption("maxfail") or None


class FailuresError(AssertionError):
    """Names the cases that failed."""


class Failures:
    """The cases of a test that ran, that failed and that were skipped."""

    def __init__(self) -> None:
        self.count = 0
        """Of the cases that began."""
        self._failed: dict[str, BaseException] = {}
        self._skipped: dict[str, str] = {}

    def __enter__(self) -> Failures:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        __tracebackhide__ = True
        if error is None:
            self.check()
        elif self._failed and not isinstance(error, FailuresError):
            error.add_note(self.summary())

    @contextmanager
    def case(self, name: object) -> Iterator[None]:
        """Run the block as a case. A name that was there before gets a number, so that it stays one of its own."""
        __tracebackhide__ = True
        self.count += 1
        unique = str(name) if str(name) not in self._failed else f"{name} (case {self.count})"
        try:
            yield
        except pytest.skip.Exception as skipped:
            self._skipped[unique] = str(skipped.msg)
        except pytest.fail.Exception as error:
            if _TIMEOUT in str(error.msg):  # of the whole test: there is no second one for the cases that follow
                error.msg = f"{error.msg} It was in the case {unique}."
                raise
            self._keep(unique, error)
        except Exception as error:
            self._keep(unique, error)

    def _keep(self, name: str, error: BaseException) -> None:
        __tracebackhide__ = True
        self._failed[name] = error
        if len(self._failed) == _ends_after:
            raise FailuresError(self.summary()) from None

    def check(self) -> None:
        """Raise FailuresError if a case failed, or AssertionError if there was none; skip if a case was skipped."""
        __tracebackhide__ = True
        if self._failed:
            raise FailuresError(self.summary())
        assert self.count, "no case was run"
        if self._skipped:
            cases = "; ".join(f"{name}: {reason}" for name, reason in self._skipped.items())
            pytest.skip(f"{len(self._skipped)} of {self.count} cases were skipped: {cases}")

    def summary(self) -> str:
        """The names of the cases that failed, each with a short traceback."""
        parts = [f"{len(self._failed)} of {self.count} cases failed: {', '.join(self._failed)}"]
        for name, error in list(self._failed.items())[:MOST_SHOWN]:
            shown = pytest.ExceptionInfo.from_exception(error).getrepr(style="short")
            parts.append(f"---- {name}\n{shown}")
        if (more := len(self._failed) - MOST_SHOWN) > 0:
            parts.append(f"---- and {more} more")
        return "\n".join(parts)
