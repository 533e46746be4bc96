"""The jobs by name; a job's module is imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from barnabas.spark.errors import MistakeError
from barnabas.terminal.suggestion import suggestion

if TYPE_CHECKING:
    from barnabas.spark.job import Job

NAMES = ("etl", "analytics", "logs", "events", "archive", "restore", "copy")


def find_job(name: str) -> Job:
    """The job with this name; MistakeError if there is none."""
    if name not in NAMES:
        raise MistakeError(f"there is no job {name}{suggestion(name, list(NAMES))}; the jobs are {', '.join(NAMES)}")
    job: Job = import_module(f"barnabas.spark.jobs.{name}").JOB
    return job
