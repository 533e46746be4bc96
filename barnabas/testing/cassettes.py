"""Cassettes of pytest: the session of a test's clients, recorded in its first run and answered from the file later.

The file is `cassettes/NAME.cassette` beside the test's. It is written only if the test has passed. The modes are those
of vcr.py, but for `new_episodes`: a broker's answers depend on all that was asked before.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pytest

from barnabas.testing.errors import RefusedError

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker
    from barnabas.testing.cluster import Cluster, End

FOLDER: Final = "cassettes"
MAX_BYTES: Final = 24 * 1024 * 1024
"""Of a file that a test answers from: what the broker records has at most 8 million characters."""
TIMINGS: Final = ("fast", "recorded")


def name_of_test(file: Path, name: str) -> str:
    """The cassette of a test that gives it no name: test_orders.test_it."""
    return re.sub(r"[^\w.-]+", "-", f"{file.stem}.{name}").strip("-")


class CassetteOfTest:
    """The cassette of one test: recorded, or answered from."""

    def __init__(self, test_file: Path, name: str, mode: str, timing: str) -> None:
        """`mode` is the checked setting. UsageError for a name that is no file's name, or an unknown timing."""
        if not isinstance(name, str) or not name or Path(name).name != name or name in {".", ".."}:
            raise pytest.UsageError(f"cassette must be a name, as orders, not {name!r}")
        if timing not in TIMINGS:
            raise pytest.UsageError(f"cassette_timing must be fast or recorded, not {timing!r}")
        self.path = test_file.parent / FOLDER / f"{name}.cassette"
        self.is_recorded = mode == "all" or (mode == "once" and not self.path.exists())
        self._timing = timing

    def open(self, broker: Broker, wanted: dict[str, Any]) -> Cluster:
        """The test's cluster; the test fails if the file cannot be used.

        What the test wants of its broker does not matter to a replay, which has none.
        """
        if self.is_recorded:
            return broker.open(**wanted, record=True)
        if self.path.exists() and self.path.stat().st_size > MAX_BYTES:
            self._fail(f"it has more than {MAX_BYTES} bytes; 'barnabas replay' takes any number")
        try:
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            self._fail("it is not there, and barnabas_record_mode=none records nothing")
        try:
            return broker.open(cassette=text, timing=self._timing)
        except RefusedError as error:
            self._fail(str(error))

    def _fail(self, sentence: str) -> NoReturn:
        pytest.fail(f"{self.path}: {sentence}", pytrace=False)

    def finish(self, end: End, *, passed: bool) -> None:
        """Write what was recorded; fail the test if it asked what the cassette does not have."""
        if self.is_recorded:
            if end.refused is not None:
                self._fail(end.refused)
            if passed and end.cassette is not None:
                self._write(end.cassette)
        elif end.missing:
            asked = "".join(f"\n  {one}" for one in end.missing)
            head = f"{self.path.name} has no answer to what was asked (--barnabas-record-mode all records anew):"
            pytest.fail(head + asked, pytrace=False)

    def _write(self, text: str) -> None:
        """Replace the file, as a whole or not at all."""
        self.path.parent.mkdir(exist_ok=True)
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        temporary.write_text(text, encoding="utf-8", newline="\n")
        temporary.replace(self.path)
