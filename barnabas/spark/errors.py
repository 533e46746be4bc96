"""Errors of the pipeline; the text is one sentence for the user. Exit codes are those of every command."""

from __future__ import annotations

from pathlib import Path


def installation(extra: str) -> str:
    """How to install the package with an extra, from a clone or, when it is published, from an index."""
    return f"in a clone of Barnabas run pip install '.[{extra}]' (from an index: pip install 'barnabas[{extra}]')"


INSTALL = installation("spark")
"""How to install what the pipeline needs."""


class PipelineError(Exception):
    """A run failed for a reason outside the pipeline."""

    exit_code = 1
    log: Path | None = None
    """Spark's log, if Spark has been started."""
    hint: str = ""
    """How to continue."""

    def __str__(self) -> str:
        """The sentence, with the log that has the details, and how to continue."""
        log = f" (Spark's log: {self.log})" if self.log else ""
        return f"{super().__str__()}{log}" + (f"; {self.hint}" if self.hint else "")

    def _render_traceback_(self) -> list[str]:
        """What IPython and Jupyter show: the sentence without the frames that raised it."""
        return [f"{type(self).__name__}: {self}"]


class BrokerUnavailableError(PipelineError):
    """No broker answers at the address."""


class BrokerSilentError(BrokerUnavailableError):
    """Something accepts connections at the address and does not answer."""

    exit_code = 4


class NotAuthorizedError(PipelineError):
    """The broker refused the request for this user."""

    exit_code = 5


class MistakeError(PipelineError):
    """A mistake in the options or the job's file; nothing was started."""

    exit_code = 2


class NotFoundError(MistakeError):
    """A topic that the job needs does not exist."""

    exit_code = 3
