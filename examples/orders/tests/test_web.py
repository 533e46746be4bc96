"""The web application, called as Django's test client does: no server, a request in, a response out."""

from __future__ import annotations

import io
import json
from typing import Any

from orders.web import Application

from barnabas.testing import Cluster


def post(application: Application, body: dict[str, Any]) -> str:
    """The status of POST /orders."""
    data = json.dumps(body).encode()
    status = []
    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": "/orders", "CONTENT_LENGTH": str(len(data))}
    list(application(environ | {"wsgi.input": io.BytesIO(data)}, lambda text, _: status.append(text)))
    return status[0]


def test_an_order_is_accepted_when_it_is_stored(kafka: Cluster) -> None:
    assert post(Application(kafka.bootstrap_servers), {"id": 7, "amount": 1}) == "202 Accepted"
    assert kafka.topic("orders").assert_produced(key="7").json() == {"id": 7, "amount": 1}


def test_the_client_hears_when_it_is_not(kafka: Cluster) -> None:
    with kafka.faults.add(api="Produce", topic="orders", error="TOPIC_AUTHORIZATION_FAILED"):
        assert post(Application(kafka.bootstrap_servers), {"id": 7, "amount": 1}) == "503 Service Unavailable"
    assert kafka.topic("orders").records() == []
