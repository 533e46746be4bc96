"""A web application of the shop: a plain WSGI application, as Django's and others are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import Producer


class Application:
    """POST /orders writes an order."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": "all", "message.timeout.ms": 5000})

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        failed: list[object] = []
        order = json.loads(body)
        self._producer.produce(
            "orders", body, key=str(order["id"]), on_delivery=lambda error, _: error and failed.append(error)
        )
        self._producer.flush(10)
        start_response("503 Service Unavailable" if failed else "202 Accepted", [("Content-Type", "text/plain")])
        return [b"again later" if failed else b"accepted"]
