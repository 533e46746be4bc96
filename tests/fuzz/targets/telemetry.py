"""What clients push as metrics (OTLP), from the payload to the lines of a scrape.

Only ProtobufError. The stored metrics stay within their bound, and Prometheus can read every line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from barnabas.coord.client_metrics.kept import KeptMetrics
from barnabas.coord.client_metrics.matching import SELECTORS
from barnabas.wire.clients.otlp import read_metrics
from barnabas.wire.clients.protobuf import ProtobufError
from tests.fuzz.targets import is_sayable
from tests.support.requests.otlp_writer import gauge, number, push, sum_of

MAX_BYTES = 1024
MOST = 4_000
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
LABELS = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\["\\n])*"(,|$))*')


def check(data: bytes) -> None:
    """A push of a client, which another one follows."""
    metrics = KeptMetrics(MOST)
    for last in (1, 2):
        client = metrics.begin(bytes(15) + bytes((last,)), dict.fromkeys(SELECTORS, 'a"\n\\'), 1000.0)
        try:
            for item in read_metrics(data):
                if item is not None:
                    metrics.add(client, item)
        except ProtobufError:
            pass
        assert metrics.bytes <= MOST or metrics.client_count <= 2
    for name, family in metrics.families.items():
        assert NAME.fullmatch(name), name
        for series in family.of.values():
            for labels, value in series.items():
                is_sayable(labels)
                assert LABELS.fullmatch(labels), labels
                float(value)


def seeds() -> Iterator[bytes]:
    """Pushes of gauges and sums."""
    yield push([gauge("org.apache.kafka.consumer.fetch.manager.lag", number(1.5, topic="t", partition="0"))])
    yield push([sum_of("1bad name", number(7), number(-1), is_delta=True)], client_rack='a"\\b\n')
    yield push([sum_of("x", number(7), is_delta=False), gauge("x", number(float("nan")))], a="b")
    yield push([gauge("m" * 100, *(number(n, k=str(n)) for n in range(12)))])
