"""`barnabas perf`: measures producing, consuming and the way from a producer to a consumer, with this client."""

from __future__ import annotations

import click

from barnabas.cli.command_groups import LazyGroup

COMMANDS = {
    "produce": (
        "barnabas.cli.perf.produce:produce",
        "Measure how fast records are sent to TOPIC and acknowledged, as kafka-producer-perf-test does.",
    ),
    "consume": (
        "barnabas.cli.perf.consume:consume",
        "Measure how fast the records of TOPICs are read, as kafka-consumer-perf-test does.",
    ),
    "latency": (
        "barnabas.cli.perf.latency:latency",
        "Measure the time until a record that is sent to TOPIC is acknowledged, and until it is read.",
    ),
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
def perf() -> None:
    """Measure a broker with this client.

    It is written in Python and uses one core, which limits it to some hundred thousand records a second. Compare its
    numbers with each other, and not with those of clients in C or Java.
    """
