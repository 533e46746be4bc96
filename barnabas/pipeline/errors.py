"""Errors of the pipeline; the text is one sentence for the user."""

from __future__ import annotations


class PipelineError(Exception):
    """A run failed for a reason outside the pipeline."""

    exit_code = 1


class BrokerUnavailableError(PipelineError):
    """No broker answers at the address."""


class MistakeError(PipelineError):
    """A mistake in the options or the job's file; nothing was started."""

    exit_code = 2
