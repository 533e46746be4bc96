"""A broker of the tests whose process is forked: for tests whose subject is not the start of the interpreter."""

from __future__ import annotations

from typing import Any

from tests.support.processes import warm
from tests.support.processes.server import ROOT, BarnabasServer


class WarmServer(BarnabasServer):
    """A `BarnabasServer` of this checkout whose process is forked from one that has imported everything (`warm.py`)."""

    def _launch(self, command: list[str], environment: dict[str, str]) -> Any:
        if self.checkout != ROOT or tuple(command[1:4]) != warm.SERVE:
            return super()._launch(command, environment)
        return warm.launch(command, environment, self.log_path)
