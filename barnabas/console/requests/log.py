"""The last requests of brokers: for each a ring that is filled from its channel while somebody looks.

All who look share them, and whoever asks fills it first; the broker ends its watch by itself when nobody asks.
Exchanges are decoded when they are shown or filtered.
"""

from __future__ import annotations

import heapq
import json
import re
from base64 import b64decode
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any, Final

from barnabas.console.control import Control
from barnabas.console.failures import Refused
from barnabas.console.requests.decoding import Decoded, Topics, decode, dump, name_of_api
from barnabas.supervise.state import NoCluster, NodeState, read, requests_file

MAX_KEPT: Final = 2_000
MAX_KEPT_BYTES: Final = 8 * 1024 * 1024
TOPICS_S: Final = 1.0
"""How often the names of topic ids are asked for, seconds."""
LOOKED_S: Final = 5.0
"""What was forgotten counts as lost if the last filling was not longer ago, seconds: else nobody looked."""
MAX_CALLS: Final = 10
"""Questions to the broker of one filling: 1,000 exchanges."""


class Exchange:
    """One request with its response, as the broker's channel tells it."""

    def __init__(self, told: dict[str, Any], node: int) -> None:
        self.node = node
        """The broker of a cluster; 0 for a broker alone."""
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
    node: int = 0
    """A broker of a cluster; 0 for all."""
    own: bool = False
    """Those of the console, and of brokers among themselves, too."""

    def selects(self, exchange: Exchange, topics: Topics) -> bool:
        """Whether an exchange is shown."""
        if not self.own and _OWN.match(exchange.client_id):
            return False
        if self.node and exchange.node != self.node:
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


_OWN: Final = re.compile(r"barnabas-console|broker-\d+-|raft-client-\d+")
"""How the client ids of the console, and of brokers among themselves, begin."""


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

    def __init__(self, control: Control, node: int = 0) -> None:
        self.control = control
        self._node = node
        self._lock = Lock()
        self._kept: deque[Exchange] = deque()
        self._bytes = 0
        self._next = 0
        self.waiting: list[Exchange] = []
        """Requests without a response, at the last filling."""
        self._filled = -LOOKED_S
        self.lost = 0
        """Exchanges that were forgotten by the broker while somebody looked: there were too many."""

    def fill(self) -> None:
        """Get what is new. `Refused` if the broker does not answer."""
        with self._lock:
            is_looked_at = monotonic() - self._filled < LOOKED_S
            for _ in range(MAX_CALLS):
                answer = self.control.perform("exchanges", {"after": self._next})
                for told in answer["requests"]:
                    self._keep(Exchange(told, self._node))
                self.lost += answer["lost"] if is_looked_at else 0
                self._next = answer["next"]
                if not answer["requests"]:
                    break
            self._filled = monotonic()
            self.waiting = [Exchange(told, self._node) for told in answer["waiting"]]

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


class RequestLogs:
    """The rings of the broker with the channel, or of the brokers of `serve --brokers N --console`."""

    def __init__(self, control: Control | None, data_dir: str | None) -> None:
        self._data_dir = data_dir
        self._by_node: dict[int, RequestLog] = {} if control is None else {0: RequestLog(control)}
        self._texts: dict[int, str] = {}
        self._lock = Lock()
        self.silent: list[int] = []
        """The brokers that told nothing at the last filling."""

    @property
    def is_available(self) -> bool:
        """Whether any broker tells its requests."""
        self._find()
        return bool(self._by_node)

    @property
    def nodes(self) -> list[int]:
        """The brokers of a cluster; none for a broker alone."""
        return sorted(node for node in self._by_node if node)

    def fill(self) -> None:
        """Get what is new of all brokers. `Refused` if none answers."""
        self._find()
        silent: dict[int, Refused] = {}
        for node, log in sorted(self._by_node.items()):
            try:
                log.fill()
            except Refused as error:
                log.waiting = []
                silent[node] = error
        self.silent = list(silent)
        if silent and len(silent) == len(self._by_node):
            raise next(iter(silent.values()))

    def newest(self, after: Mapping[int, int] | None = None) -> Iterator[Exchange]:
        """The exchanges that ended after a number for each broker, by time, the last one first."""
        logs = [log.newest((after or {}).get(node, 0)) for node, log in sorted(self._by_node.items())]
        return heapq.merge(*logs, key=lambda exchange: -(exchange.time + exchange.took))

    def last_numbers(self) -> dict[int, int]:
        """The number of the last exchange of each broker."""
        return {node: next((each.number for each in log.newest()), 0) for node, log in self._by_node.items()}

    def find(self, node: int, number: int) -> Exchange | None:
        """The exchange of a broker and a number; None if it is forgotten."""
        log = self._by_node.get(node)
        return None if log is None else log.find(number)

    @property
    def waiting(self) -> list[Exchange]:
        """Requests without a response, at the last filling."""
        return [exchange for log in self._by_node.values() for exchange in log.waiting]

    @property
    def count(self) -> int:
        """How many are kept."""
        return sum(log.count for log in self._by_node.values())

    @property
    def lost(self) -> int:
        """Exchanges that came too fast to be kept."""
        return sum(log.lost for log in self._by_node.values())

    def close(self) -> None:
        """Close idle connections to the brokers of a cluster."""
        for node in self.nodes:
            self._by_node[node].control.close()

    def _find(self) -> None:
        """Read the control files of the cluster's brokers: a broker that is started again has a new one."""
        if self._data_dir is None or 0 in self._by_node:
            return
        try:
            brokers = read(self._data_dir).brokers
        except NoCluster as error:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from None
        with self._lock:
            for node in brokers:
                self._read(node)

    def _read(self, node: NodeState) -> None:
        try:
            text = Path(requests_file(node)).read_text(encoding="utf-8")
            told = json.loads(text)
            address = (told["control"], told["token"])
        except (OSError, ValueError, KeyError, TypeError):
            return  # it has none, or is starting
        if self._texts.get(node.node_id) != text:
            self._texts[node.node_id] = text
            self._by_node[node.node_id] = RequestLog(Control(address), node.node_id)
