"""The screens: what the navigation shows, and the modules that declare resources. A screen is one line of `SCREENS`."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

from barnabas.console.screens import topics
from barnabas.console.screens.messages import browse, export, live, produce, records, schemas


@dataclass(frozen=True)
class Screen:
    """One entry of the navigation."""

    title: str
    path: str
    modules: tuple[ModuleType, ...]

    def is_current(self, path: str) -> bool:
        """Whether a page at `path` belongs to this screen."""
        return path == self.path or path.startswith(self.path.rstrip("/") + "/")


SCREENS = (
    Screen("Topics", "/topics", (topics,)),
    Screen("Messages", "/messages", (browse, records, live, export, produce, schemas)),
)
