"""A planted bug: a piece of text that is replaced by another, and the test that must fail then."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

CRASHES = "tests/crash/test_crash_states.py::test_promises_hold_in_every_crash_state"


@dataclass(frozen=True)
class Mutant:
    """One rule broken on purpose."""

    name: str
    file: str
    old: str
    """Occurs once in the file."""
    new: str
    test: str
    env: dict[str, str] = field(default_factory=dict)

    def apply(self, root: Path) -> None:
        """Plant the bug in the tree below `root`. ValueError when the place is not there, or not the only one."""
        path = root / self.file
        text = path.read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: the text occurs {text.count(self.old)} times in {self.file}")
        path.write_text(text.replace(self.old, self.new))


def crashes(name: str, file: str, old: str, new: str, *, states: int = 20_000, seed: int = 1) -> Mutant:
    """A mutant that a search through crash states must catch, of a seed that meets it early."""
    return Mutant(name, file, old, new, CRASHES, {"BARNABAS_CRASH_STATES": str(states), "BARNABAS_SEED": str(seed)})
