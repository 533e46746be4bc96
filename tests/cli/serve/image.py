"""The instructions of the Dockerfile."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


class Image:
    """The instructions of the Dockerfile."""

    def __init__(self) -> None:
        text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())
        self.instructions = [
            tuple(line.split(None, 1)) for line in text.splitlines() if line and not line.startswith("#")
        ]

    def one(self, name: str) -> str:
        """The argument of the only instruction of this name."""
        (argument,) = [argument for instruction, argument in self.instructions if instruction == name]
        return argument

    @property
    def environment(self) -> dict[str, str]:
        return dict(pair.split("=", 1) for pair in self.one("ENV").split())

    @property
    def entry_point(self) -> list[str]:
        return json.loads(self.one("ENTRYPOINT"))

    @property
    def health_check(self) -> list[str]:
        return json.loads(self.one("HEALTHCHECK").partition("CMD ")[2])
