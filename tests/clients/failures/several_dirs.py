"""A broker with several log directories."""

from __future__ import annotations

from tests.support.processes.warm_server import WarmServer


class SeveralDirs(WarmServer):
    """A broker that takes its directories from `log.dirs` if set."""

    def _command(self) -> tuple[list[str], dict[str, str]]:
        command, environment = super()._command()
        if "log.dirs" in self.config:
            at = command.index("--data-dir")
            del command[at : at + 2]
        return command, environment
