"""`barnabas top`: brokers, topics by rate, groups by lag, clients by requests, open transactions, on a full screen."""

from __future__ import annotations

import logging
import sys
import time
from typing import TYPE_CHECKING

import click

from barnabas.cli.options.parameters import bootstrap_option, connect, timeout_option
from barnabas.cli.testkit.control_channel import control_options, perform
from barnabas.client.errors import ClientError
from barnabas.terminal.screen import can_redraw, has_colour, is_terminal

if TYPE_CHECKING:
    from barnabas.cli.top.tables import ClientRates, Snapshot
    from barnabas.console.collector.collector import Collector

SHARE = 0.05
"""Of a core, for the tables of a cluster with many thousands of topics; the sampling has as much."""
KEYS_S = 0.25
"""How often the screen looks for a new sample and a new size, seconds."""


@click.command()
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(min=0.2, max=60),
    default=2.0,
    metavar="SECONDS",
    show_default=True,
    help="Time between two samples.",
)
@control_options
@bootstrap_option
@timeout_option
def top(interval_s: float, file: str | None, url: str | None, number: int, bootstrap: str, timeout_s: float) -> int:
    """Watch brokers, topics, groups, clients and transactions on a full screen.

    \b
    barnabas top
    barnabas top -b broker:9092 --interval 5

    Keys are those of htop: F1 helps, F4 filters, F5 shows trees, F6 sorts, F10 quits; letters do the same.
    Clients and their requests are shown with --control-file or --control: no API of Kafka tells them.
    """
    if not (is_terminal(sys.stdin) and can_redraw(sys.stdout)):
        raise click.UsageError(
            "this draws on a whole terminal, which is not there (or TERM=dumb); 'barnabas group lag', "
            "'barnabas cluster info' and 'barnabas txn list' print figures"
        )
    from barnabas.console.collector.collector import Collector

    connect(bootstrap, timeout_s).close()  # a wrong address is said before the screen is drawn
    try:
        import termios  # noqa: F401 - Windows has none
    except ImportError:
        raise ClientError("this needs a terminal with termios, which Linux and macOS have") from None
    collector = Collector(lambda: connect(bootstrap, timeout_s), interval_s)
    clients = _Clients(file, url, number) if file is not None or url is not None else None
    try:
        if clients is not None:
            clients.ask()  # a wrong channel is said before the screen is drawn
        _watch(collector, clients)
    finally:
        collector.close()
    return 0


class _Clients:
    """The counts of a control channel, asked with every sample."""

    def __init__(self, file: str | None, url: str | None, number: int) -> None:
        from barnabas.cli.top.tables import ClientRates

        self.rates: ClientRates = ClientRates()
        self._channel = (file, url, number)

    def ask(self) -> None:
        """ClientError if the channel does not answer."""
        self.rates.put(perform(*self._channel, "clients")["clients"], time.monotonic())


def _watch(collector: Collector, clients: _Clients | None) -> None:
    """Draw with every sample, key and change of size, until the user quits."""
    from barnabas.cli.top.frame import State, draw, press
    from barnabas.terminal.keys import full_screen

    logging.getLogger("barnabas").addHandler(logging.NullHandler())  # nothing is written over the screen
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    state = State(has_colour=has_colour(sys.stdout), is_unicode=encoding == "utf8")
    shown: Snapshot | None = None
    sampled, drawn, next_at = 0, None, 0.0
    with full_screen() as screen:
        while not state.is_done:
            collector.keep_sampling()
            count = collector.wait_for_sample(sampled, 0)
            if count > sampled and not state.is_paused and time.monotonic() >= next_at:
                began = time.thread_time()
                shown, sampled = _sample(collector, clients), count
                next_at = time.monotonic() + (time.thread_time() - began) / SHARE
            size, failure = screen.size(), collector.failure
            if drawn != (size, sampled, failure):
                screen.draw(draw(state, shown, *size, failure))
                drawn = size, sampled, failure
            try:
                for key in screen.keys(KEYS_S):
                    press(state, key, shown)
                    drawn = None
            except EOFError:
                return


def _sample(collector: Collector, clients: _Clients | None) -> Snapshot:
    from barnabas.cli.top.tables import snapshot

    if clients is not None:
        try:
            clients.ask()
        except ClientError:
            pass  # the broker restarts: the last counts stay
    return collector.read(lambda figures, now_s: snapshot(figures, now_s, None if clients is None else clients.rates))
