"""`barnabas record`: a proxy that records what clients and a broker say to each other, and what it has recorded."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import click

from barnabas.cli.parameters import output_option
from barnabas.terminal.notes import note
from barnabas.terminal.tables import show_rows

if TYPE_CHECKING:
    from barnabas.cassette.addresses import Address
    from barnabas.cassette.exchange import Exchange

COLUMNS = ("at_ms", "connection", "client_id", "api", "version", "took_ms")


@click.command()
@click.option("--upstream", metavar="HOST:PORT", help="The broker to record; others are found by its answers.")
@click.option(
    "--listen", metavar="HOST:PORT", default="127.0.0.1:0", show_default=True, help="Where clients connect to instead."
)
@click.option("--file", metavar="FILE", help="Where the session is written to; it must not be there yet.")
@click.option("--show", metavar="FILE", help="Show what is in such a file; -o json shows all of it.")
@output_option
def record(upstream: str | None, listen: str, file: str | None, show: str | None, output: str) -> None:
    """Record the session of clients with a broker, until Ctrl-C.

    Clients use the address that is printed, and stay with it: addresses in the broker's answers are replaced. A test
    with the kit answers from the file (@pytest.mark.kafka(cassette=...)). Plaintext only; what a client logs in with is
    not written.

    \b
    barnabas record --upstream 127.0.0.1:9092 --file orders.cassette
    """
    if show is not None:
        if upstream is not None or file is not None:
            raise click.UsageError("--show takes no --upstream and no --file")
        _show(show, output)
        return
    if upstream is None or file is None:
        raise click.UsageError("give --upstream and --file, or --show")
    count = _record(_address(upstream, "--upstream"), _address(listen, "--listen"), file)
    note(f"{count} requests in {file}")


def _record(upstream: Address, listen: Address, file: str) -> int:
    """Record until a signal to stop; how many requests there were."""
    import trio

    from barnabas.cassette.exchange import header
    from barnabas.cassette.proxy import Proxy

    count = 0

    async def run() -> None:
        def keep(exchange: Exchange) -> None:
            nonlocal count
            count += 1
            out.write(exchange.line() + "\n")
            out.flush()  # what was recorded is there, whatever ends the recording

        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            try:
                proxy = Proxy(upstream, listen, keep)
            except OSError as error:
                raise click.ClickException(f"cannot listen on {listen[0]}:{listen[1]}: {error.strerror}") from None
            try:
                with open(file, "x", encoding="utf-8") as out:  # noqa: ASYNC230 - a small file, and nobody is served yet
                    out.write(header() + "\n")
                    click.echo(f"{proxy.address[0]}:{proxy.address[1]}")
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(proxy.run)
                        async for _ in signals:
                            nursery.cancel_scope.cancel()
            finally:
                proxy.close()

    trio.run(run)
    return count


def _show(file: str, output: str) -> None:
    from barnabas.cassette.exchange import CassetteError, read
    from barnabas.cassette.show import rows

    with open(file, encoding="utf-8", errors="replace") as source:
        try:
            found = read(source.read())
        except CassetteError as error:
            raise click.ClickException(f"{file}: {error}") from None
    shown = list(rows(sorted(found, key=lambda one: one.at)))
    show_rows(shown, output, columns=COLUMNS, empty="no requests")


def _address(text: str, option: str) -> Address:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not 0 <= int(port) < 1 << 16:
        raise click.UsageError(f"{option} must be HOST:PORT, not {text!r}")
    return host.strip("[]"), int(port)
