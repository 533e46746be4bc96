"""The corpus of a target: an input in a line of Base64; comments begin with `#` and say which bug an input found."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable
from pathlib import Path

KEPT = Path(__file__).parent.parent / "data" / "fuzz"
FINDINGS = "findings"
"""The corpus of all targets' inputs that have found a bug: `TARGET INPUT` in a line."""


def corpus(target: str) -> list[bytes]:
    """The inputs of a target, including inputs that have found a bug."""
    inputs = [b64decode(line) for line in _lines(KEPT / f"{target}.txt")]
    named = (line.split() for line in _lines(KEPT / f"{FINDINGS}.txt"))
    return inputs + [b64decode(rest[0]) if rest else b"" for name, *rest in named if name == target]


def keep(target: str, inputs: Iterable[bytes]) -> None:
    """Make these the target's corpus."""
    KEPT.mkdir(parents=True, exist_ok=True)
    chosen = sorted(set(inputs) - {b""}, key=lambda data: (len(data), data))
    (KEPT / f"{target}.txt").write_text("".join(b64encode(data).decode() + "\n" for data in chosen))


def _lines(file: Path) -> list[str]:
    if not file.exists():
        return []
    return [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
