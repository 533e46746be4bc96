"""A cassette to read: what each request of the session asked, and what it was answered, in Kafka's JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from barnabas.cassette.exchange import Exchange
from barnabas.cassette.replay import name_of
from barnabas.wire.json_form import to_json


def rows(exchanges: Iterable[Exchange]) -> Iterator[dict[str, Any]]:
    """A row for each request; times in ms since the session began, and until it was answered."""
    for one in exchanges:
        request, response = one.request_message(), one.response_message()
        yield {
            "at_ms": round(one.at * 1000),
            "connection": one.connection,
            "client_id": one.client_id,
            "api": name_of(one.api),
            "version": one.version,
            "took_ms": None if one.answered_at is None else round((one.answered_at - one.at) * 1000),
            "request": None if request is None else to_json(request, one.response_version),
            "response": None if response is None else to_json(response, one.response_version),
        }
