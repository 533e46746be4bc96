"""The steps of a demonstration that are done, in its directory, so that a failed one can continue.

A step that was interrupted is done again: a topic is produced again from the beginning, a job continues from its
checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from barnabas.spark.demo.page import Timing
from barnabas.spark.errors import MistakeError

FILE = "demo.json"


class Steps:
    """The file of a demonstration; each change is written before the next step begins."""

    def __init__(self, path: Path, count: int | None, done: dict[str, Timing]) -> None:
        self._path = path
        self.count = count
        """The number of flights; None for all."""
        self._done = done

    @classmethod
    def begin(cls, work: Path, count: int | None) -> Steps:
        """A new demonstration."""
        steps = cls(work / FILE, count, {})
        steps._write()
        return steps

    @classmethod
    def resume(cls, work: Path) -> Steps:
        """The demonstration of this directory; MistakeError if there is none."""
        path = work / FILE
        try:
            known: dict[str, Any] = json.loads(path.read_text())
            done = {step: Timing(step, records, seconds) for step, records, seconds in known["done"]}
            return cls(path, known["flights"], done)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise MistakeError(
                f"{work} is not the directory of a demonstration, which has a file {FILE}: run without --resume"
            ) from error

    def run(self, step: str, work: Callable[[], Timing | None]) -> Timing | None:
        """Do a step unless it is done; None if it was stopped."""
        if step in self._done:
            print(f"{step}: done before", flush=True)
            return self._done[step]
        done = work()
        if done is not None:
            self._done[step] = done
            self._write()
        return done

    def is_done(self, step: str) -> bool:
        """Whether this step is done."""
        return step in self._done

    def _write(self) -> None:
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps({"flights": self.count, "done": [list(done) for done in self._done.values()]}))
        fresh.replace(self._path)
