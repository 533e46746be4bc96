"""The last requests of a broker: a ring that is filled from its channel while somebody looks.

All who look share it, and whoever asks fills it first; the broker ends its watch by itself when nobody asks.
Exchanges are decoded when they are shown or filtered.
"""

from __future__ import annotations

from base64 import b64decode
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from barnabas.console.requests.decoding import Decoded, Topics, decode, dump, name_of_api

if TYPE_CHECKING:
    from barnabas.console.control import Control

MAX_KEPT: Final = 2_000
MAX_KEPT_BYTES: Final = 8 * 1024 * 1024
TOPICS_S: Final = 1.0
"""How often the names of topic ids are asked for, seconds."""
MAX_CALLS: Final = 10
"""Questions to the broker of one filling: 1,000 exchanges."""


class Exchange:
    """One request with its response, as the broker's channel tells it."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.number: int = told["number"]
        """In the order of the ends; 0 while it waits."""
        self.time: float = told["time"]
        self.took: float = told["took"]
        """Until the response, or until now; seconds."""
        self.connection: int = told["connection"]
        self.peer: str = told["peer"]
        self.listener: str = told["listener"]
        self.principal: str = told["principal"]
        self.client_id: str = told["client_id"] or ""
        self.api: int = told["api"]
        self.version: int = told["version"]
        self.outcome: str = told["outcome"]
        """waits, answered, unanswered, closed or refused."""
        self.why: str = told["why"]
        self.is_hidden: bool = told["hidden"]
        self.request_size: int = told["request_size"]
        self.response_size: int = told["response_size"]
        self._request = b64decode(told["request"])
        self._response = [part if isinstance(part, int) else b64decode(part) for part in told["response"]]
        self._decoded: Decoded | None = None

    @property
    def api_name(self) -> str:
        """The name of its API."""
        return name_of_api(self.api)

    @property
    def kept(self) -> int:
        """Bytes of its frames in memory."""
        return len(self._request) + sum(len(part) for part in self._response if isinstance(part, bytes))

    def names(self, topics: Topics) -> Decoded:
        """Its names and errors, without the messages."""
        if self._decoded is None:
            self._decoded = self._decode(topics, with_json=False)
        return self._decoded

    def whole(self, topics: Topics) -> Decoded:
        """Names, errors and messages."""
        return self._decode(topics, with_json=True)

    def _decode(self, topics: Topics, *, with_json: bool) -> Decoded:
        if self.is_hidden or self.api < 0:
            text = "Its bytes are not kept: they have passwords, tokens or keys."
            return Decoded(why_request=text, why_response=text if self.response_size else "")
        arguments = (self._request, self.request_size, self._response, self.response_size)
        return decode(self.api, self.version, *arguments, topics, with_json=with_json)

    def dumps(self) -> tuple[str, str]:
        """The first bytes of request and response in hex."""
        return dump([self._request]), dump(self._response)


@dataclass(frozen=True)
class RequestFilter:
    """Which requests are shown; an empty field is for all."""

    client: str = ""
    """A part of the client id, or of the principal."""
    api: str = ""
    topic: str = ""
    """A topic, group or transactional id."""
    error: str = ""
    """A part of an error's name; `any` for every error."""
    connection: int = 0
    own: bool = False
    """The console's own requests too."""

    def selects(self, exchange: Exchange, topics: Topics) -> bool:
        """Whether an exchange is shown."""
        if not self.own and exchange.client_id.startswith(OWN_CLIENT):
            return False
        if self.connection and exchange.connection != self.connection:
            return False
        if self.api and exchange.api_name != self.api:
            return False
        needle = self.client.casefold()
        if needle and needle not in exchange.client_id.casefold() and needle not in exchange.principal.casefold():
            return False
        if not self.topic and not self.error:
            return True
        names = exchange.names(topics)
        if self.topic and self.topic not in (*names.topics, *names.groups, *names.transactional_ids):
            return False
        return not self.error or self._has_error(exchange, names)

    def _has_error(self, exchange: Exchange, names: Decoded) -> bool:
        if self.error == "any":
            return bool(names.errors) or exchange.outcome in ("closed", "refused")
        return any(self.error.casefold() in error.casefold() for error in (*names.errors, exchange.why))


OWN_CLIENT: Final = "barnabas-console"
"""How the client ids of the console itself begin."""


class KnownTopics:
    """The names of topic ids, asked for when an id is unknown, `TOPICS_S` after the last time at the earliest."""

    def __init__(self) -> None:
        self._names: dict[bytes, str] = {}
        self._asked = -TOPICS_S

    def of(self, ask: Callable[[], dict[bytes, str]]) -> Topics:
        """The topics; `ask` gets them from the cluster."""

        def renewed() -> dict[bytes, str]:
            if monotonic() - self._asked >= TOPICS_S:
                self._names = ask()
                self._asked = monotonic()
            return self._names

        return Topics(self._names, renewed)


class RequestLog:
    """The ring of one broker."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._lock = Lock()
        self._kept: deque[Exchange] = deque()
        self._bytes = 0
        self._next = 0
        self.waiting: list[Exchange] = []
        """Requests without a response, at the last filling."""
        self.lost = 0
        """Exchanges that were forgotten by the broker before this was filled: there were too many."""

    def fill(self) -> None:
        """Get what is new. `Refused` if the broker does not answer."""
        with self._lock:
            for _ in range(MAX_CALLS):
                answer = self._control.perform("exchanges", {"after": self._next})
                for told in answer["requests"]:
                    self._keep(Exchange(told))
                self.lost += answer["lost"]
                self._next = answer["next"]
                if not answer["requests"]:
                    break
            self.waiting = [Exchange(told) for told in answer["waiting"]]

    def _keep(self, exchange: Exchange) -> None:
        self._kept.append(exchange)
        self._bytes += exchange.kept
        while len(self._kept) > MAX_KEPT or self._bytes > MAX_KEPT_BYTES:
            self._bytes -= self._kept.popleft().kept

    def newest(self, after: int = 0) -> Iterator[Exchange]:
        """The exchanges that ended after a number, the last one first."""
        with self._lock:
            kept = list(self._kept)
        for exchange in reversed(kept):
            if exchange.number <= after:
                return
            yield exchange

    def find(self, number: int) -> Exchange | None:
        """The exchange of a number; None if it is forgotten."""
        return next((exchange for exchange in self.newest() if exchange.number == number), None)

    @property
    def count(self) -> int:
        """How many are kept."""
        return len(self._kept)
