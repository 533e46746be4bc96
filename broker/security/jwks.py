"""The keys that verify tokens: a JWKS document of a file or a URL, read again from time to time (RFC 7517, KIP-768).

A file is read before the start; a URL in a thread, so that the start does not wait for another service: until that has
answered, no token is accepted. An unknown key id has the document read again, but not more often than every
`MIN_REFRESH_S`. If a document cannot be read, the current keys stay. Source: Kafka 4.4 `RefreshingHttpsJwks`.
"""

from __future__ import annotations

import json
import logging
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from barnabas.wire.configdef import ConfigError

if TYPE_CHECKING:
    from barnabas.broker.config.oauth_settings import OAuthSettings
    from barnabas.broker.event_loop.disk_threads import DiskExecutor
    from barnabas.broker.event_loop.loop import Loop

logger = logging.getLogger("kafka.security.oauthbearer.RefreshingHttpsJwks")

MIN_REFRESH_S: Final = 10.0
"""The shortest time between two reads for unknown key ids, which any client can send."""
MAX_BYTES: Final = 1024 * 1024
TIMEOUT_S: Final = 10.0

Jwk = dict[str, Any]
"""One key, as the document has it."""


class Jwks:
    """The keys of a document."""

    def __init__(self, loop: Loop, executor: DiskExecutor, settings: OAuthSettings) -> None:
        """`executor` waits for a URL. ConfigError if a file cannot be read."""
        assert settings.jwks_url is not None
        self._loop = loop
        self._executor = executor
        self._settings = settings
        self._url = settings.jwks_url
        self._is_reading = False
        self._failures = 0
        self._next_for_unknown = -inf
        self.keys: list[Jwk] = []
        self.generation = 0
        """Counts the documents that were read."""
        if self._url.startswith("file:"):
            try:
                self._take(read_document(self._url))
            except (OSError, ValueError) as error:
                raise ConfigError(f"sasl.oauthbearer.jwks.endpoint.url: cannot read {self._url}: {error}") from error
            loop.timers.at(loop.now() + settings.refresh_s, self.refresh)
        else:
            self.refresh()

    def find(self, key_id: str | None, kind: str) -> Jwk | None:
        """The key with an id; without one the only key of a kind (RSA, EC). An unknown id has the document read."""
        of_kind = [key for key in self.keys if key.get("kty") == kind and key.get("use", "sig") == "sig"]
        if key_id is None:
            return of_kind[0] if len(of_kind) == 1 else None
        jwk = next((key for key in of_kind if key.get("kid") == key_id), None)
        now = self._loop.now()
        if jwk is None and now >= self._next_for_unknown:
            self._next_for_unknown = now + MIN_REFRESH_S
            self._read()
        return jwk

    def refresh(self) -> None:
        """Read the document, and again after its time."""
        self._read(then_again=True)

    def _read(self, *, then_again: bool = False) -> None:
        if self._is_reading and not then_again:
            return
        self._is_reading = True
        read: list[list[Jwk]] = []

        def done(failure: Exception | None) -> None:
            self._is_reading = False
            if failure is None:
                self._take(read[0])
                self._failures = 0
                wait_s = self._settings.refresh_s
            else:
                logger.warning("The keys that verify tokens cannot be read from %s: %s", self._url, failure)
                wait_s = min(self._settings.retry_s * 2 ** min(self._failures, 16), self._settings.max_retry_s)
                self._failures += then_again
            if then_again:
                self._loop.timers.at(self._loop.now() + wait_s, self.refresh)

        self._executor.submit(lambda: read.append(read_document(self._url)), done)

    def _take(self, keys: list[Jwk]) -> None:
        self.keys = keys
        self.generation += 1


def read_document(url: str) -> list[Jwk]:
    """The keys of a document; waits for the file or the other service. OSError, ValueError."""
    if url.startswith("file:"):
        with Path(unquote(urlsplit(url).path)).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    else:
        request = Request(url, headers={"Accept": "application/json"})  # noqa: S310 - http and https, of the config
        with urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310
            data = response.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"a document of more than {MAX_BYTES} bytes")
    return keys_of(data)


def keys_of(data: bytes) -> list[Jwk]:
    """The keys in the bytes of a document. ValueError if it is none."""
    try:
        keys = json.loads(data)["keys"]
    except (KeyError, TypeError, RecursionError):
        keys = None
    if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
        raise ValueError("no JWKS document: it has no list of keys")
    return keys
