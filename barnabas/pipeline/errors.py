"""What can go wrong with a pipeline, as one sentence for the person who runs it."""

from __future__ import annotations


class PipelineError(Exception):
    """A run failed for a reason outside of the pipeline; the text is one sentence that says what to do."""

    exit_code = 1


class BrokerUnavailableError(PipelineError):
    """No broker answers at the address."""


class MistakeError(PipelineError):
    """What the user asked for cannot be done as asked; nothing was started."""

    exit_code = 2
