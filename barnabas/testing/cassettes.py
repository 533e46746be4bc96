"""Cassettes of pytest: the session of a test's clients, recorded in its first run and answered from the file later.

The file is `cassettes/NAME.cassette` beside the test's. It is written only if the test has passed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from barnabas.testing.cluster import End

FOLDER = "cassettes"


class CassetteOfTest:
    """The cassette of one test: recorded, if there is none or it is to be recorded anew, or else answered from."""

    def __init__(self, test_file: Path, name: str, *, anew: bool) -> None:
        """UsageError for a name that is no file's name."""
        if not name or Path(name).name != name or name in {".", ".."}:
            raise pytest.UsageError(f"cassette must be a name, as orders, not {name!r}")
        self.path = test_file.parent / FOLDER / f"{name}.cassette"
        self.is_recorded = anew or not self.path.exists()

    def wanted(self) -> dict[str, Any]:
        """With what the test's cluster is to be opened."""
        if self.is_recorded:
            return {"record": True}
        return {"cassette": self.path.read_text(encoding="utf-8")}

    def finish(self, end: End, *, passed: bool) -> None:
        """Write what was recorded; fail the test if it asked what the cassette does not have."""
        if self.is_recorded:
            if end.refused is not None:
                pytest.fail(f"{self.path.name}: {end.refused}", pytrace=False)
            if passed and end.cassette is not None:
                self.path.parent.mkdir(exist_ok=True)
                self.path.write_text(end.cassette, encoding="utf-8")
        elif end.missing:
            asked = "".join(f"\n  {one}" for one in end.missing)
            pytest.fail(
                f"{self.path.name} has no answer to what was asked (--barnabas-record records anew):{asked}",
                pytrace=False,
            )
