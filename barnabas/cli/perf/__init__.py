"""`barnabas perf`: measures producing, consuming and the way from a producer to a consumer, with this client."""

from __future__ import annotations

import click

from barnabas.cli.command_groups import LazyGroup

COMMANDS = {
    "produce": ("barnabas.cli.perf.produce:produce", ""),
    "consume": ("barnabas.cli.perf.consume:consume", ""),
    "latency": ("barnabas.cli.perf.latency:latency", ""),
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
def perf() -> None:
    """Measure a broker with this client.

    It is written in Python and uses one core: what is measured is limited by it, to some hundred thousand records a
    second. Compare its numbers with each other, and not with those of clients in C or Java.
    """
