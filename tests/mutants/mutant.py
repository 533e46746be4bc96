"""A planted bug: a replacement of text in one file, and the test that must fail with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

CRASHES = "tests/crash/test_crash_states.py::test_promises_hold_in_every_crash_state"


@dataclass(frozen=True)
class Mutant:
    """One planted bug."""

    name: str
    file: str
    old: str
    """The text to replace, which must occur once in the file."""
    new: str
    test: str
    env: dict[str, str] = field(default_factory=dict)

    def apply(self, root: Path) -> None:
        """Plant the bug in the tree below `root`. ValueError unless `old` occurs once."""
        path = root / self.file
        text = path.read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: the text occurs {text.count(self.old)} times in {self.file}")
        path.write_text(text.replace(self.old, self.new))


def crashes(name: str, file: str, old: str, new: str, *, states: int = 20_000, seed: int = 1) -> Mutant:
    """A mutant that the test of crash states must catch; `seed` finds it after few states."""
    return Mutant(name, file, old, new, CRASHES, {"BARNABAS_CRASH_STATES": str(states), "BARNABAS_SEED": str(seed)})
