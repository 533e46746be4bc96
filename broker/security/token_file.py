"""The token with which this node logs in at other nodes, in a file that is replaced at renewal (KIP-768).

It is read before the start, and then in a thread every `CHECK_S`. If the file cannot be read, the current token stays,
with one line in the log.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.wire.configdef import ConfigError

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.steps import StepRunner, Steps

logger = logging.getLogger("kafka.security.oauthbearer.FileJwtRetriever")

CHECK_S: Final = 10.0
MAX_BYTES: Final = 64 * 1024


class TokenFile:
    """The token of a file."""

    def __init__(self, path: str, loop: Loop, runner: StepRunner) -> None:
        """ConfigError if there is no token."""
        self._path = path
        self._loop = loop
        self._runner = runner
        self._complaint = ""
        self._token = read_token(path)
        self._look_later()

    def current(self) -> str:
        """The token as of the last check."""
        return self._token

    def _look_later(self) -> None:
        self._loop.timers.at(self._loop.now() + CHECK_S, self._look_now)

    def _look_now(self) -> None:
        self._runner.start(self._look(), self._seen)

    def _look(self) -> Steps[str]:
        tokens: list[str] = []
        try:
            yield lambda: tokens.append(read_token(self._path))
        except ConfigError as error:
            return str(error)
        self._token = tokens[0]
        return ""

    def _seen(self, complaint: str) -> None:
        if complaint and complaint != self._complaint:
            logger.warning("%s; the token of before is used", complaint)
        self._complaint = complaint
        self._look_later()


def read_token(path: str) -> str:
    """The token; waits for the disk. ConfigError if there is none."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"Cannot read {path} (sasl.oauthbearer.token.endpoint.url): {error.strerror}") from error
    token = data.strip()
    if not token or len(data) > MAX_BYTES or not token.isascii() or len(token.split()) != 1 or b"\x01" in token:
        raise ConfigError(f"{path} (sasl.oauthbearer.token.endpoint.url) must have one token and nothing else")
    return token.decode()
