"""`barnabas record` and `barnabas replay`: what clients and a broker say to each other, written down and said again."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import click
import trio

from barnabas.cli.serve import UsageError as WrongOption
from barnabas.cli.serve import host_and_port
from barnabas.client.errors import ClientError
from barnabas.kit.cassette.addresses import Address
from barnabas.kit.cassette.exchange import Exchange
from barnabas.kit.cassette.player import Player
from barnabas.kit.cassette.proxy import Proxy
from barnabas.kit.cassette.replay import Replay
from barnabas.kit.cassette.text import HEADER, CassetteError, read
from barnabas.kit.cassette.writer import Writer
from barnabas.terminal.notes import note
from barnabas.wire.errors import KafkaError

Made = TypeVar("Made")

listen_option = click.option(
    "--listen", metavar="HOST:PORT", default="127.0.0.1:0", show_default=True, help="Where clients connect to instead."
)


@click.command()
@click.option(
    "--upstream", metavar="HOST:PORT", required=True, help="The broker to record; others are found by its answers."
)
@listen_option
@click.option("--file", metavar="FILE", required=True, help="Where the session is written; it must not be there yet.")
def record(upstream: str, listen: str, file: str) -> None:
    """Record the session of clients with a broker in a file, a cassette, until Ctrl-C.

    Clients use the address that is printed, and stay with it: addresses in the broker's answers are replaced.
    'barnabas replay', or a test with @pytest.mark.kafka(cassette=...), answers from the file. Plaintext only. Passwords
    and tokens are not written; records are.

    \b
    barnabas record --upstream 127.0.0.1:9092 --file orders.cassette
    """
    count = trio.run(_record, _address(upstream, "--upstream"), _address(listen, "--listen"), file)
    note(f"{count} requests in {file}")


@click.command()
@click.argument("file", metavar="FILE")
@listen_option
@click.option(
    "--timing",
    type=click.Choice(["fast", "recorded"]),
    default="fast",
    show_default=True,
    help="Answer at once, or after the time that each answer took in the session.",
)
def replay(file: str, listen: str, timing: str) -> None:
    """Answer clients from a cassette, without a broker, until Ctrl-C.

    The exit code is 1 if a request came that the cassette does not have.

    \b
    barnabas replay orders.cassette --listen 127.0.0.1:9092
    """
    replay = partial(_replay, as_recorded=timing == "recorded")
    missing = trio.run(replay, file, _address(listen, "--listen"))
    if missing:
        raise ClientError("\n".join([f"{file} has no answer to what was asked:", *missing]))


async def _record(upstream: Address, listen: Address, file: str) -> int:
    """Record until a signal to stop; how many requests there were."""
    count = 0
    failures: list[OSError] = []

    def write(_: Exchange, text: str) -> None:
        nonlocal count
        count += 1
        out.write(text)
        out.flush()  # what was recorded is there, whatever ends the recording

    async def write_all() -> None:
        try:
            await writer.run()
        except OSError as error:
            failures.append(error)
            nursery.cancel_scope.cancel()

    await _look_for_broker(upstream)
    writer = Writer(write)
    proxy = _listening(listen, lambda address: Proxy(upstream, address, writer.keep))
    try:
        with open(file, "x", encoding="utf-8", newline="\n") as out:  # noqa: ASYNC230 - nobody is served yet
            out.write(HEADER + "\n")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(write_all)
                await _serve(proxy.run, proxy.address)
                writer.end()
    finally:
        proxy.close()
    if failures:
        raise ClientError(f"{file}: {failures[0].strerror}")
    return count


async def _replay(file: str, listen: Address, *, as_recorded: bool) -> list[str]:
    """Answer until a signal to stop; what the cassette has no answer to."""
    try:
        with open(file, encoding="utf-8", errors="replace") as lines:  # noqa: ASYNC230 - nobody is served yet
            replay = Replay(read(lines), as_recorded=as_recorded)
    except (CassetteError, KafkaError) as error:
        raise ClientError(f"{file}: {error}") from None
    player = _listening(listen, lambda address: Player(replay, address))
    await _serve(player.run, player.address)
    return replay.missing


async def _look_for_broker(upstream: Address) -> None:
    try:
        stream = await trio.open_tcp_stream(*upstream)
    except OSError:
        raise ClientError(f"there is no broker at {upstream[0]}:{upstream[1]}") from None
    await stream.aclose()


def _listening(listen: Address, make: Callable[[Address], Made]) -> Made:
    try:
        return make(listen)
    except OSError as error:
        raise ClientError(f"cannot listen on {listen[0]}:{listen[1]}: {error.strerror}") from None


async def _serve(serve: Callable[[], Awaitable[None]], address: Address) -> None:
    """Print the address, and serve until Ctrl-C."""
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        click.echo(f"{address[0]}:{address[1]}")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            async for _ in signals:
                nursery.cancel_scope.cancel()


def _address(text: str, option: str) -> Address:
    try:
        host, port = host_and_port(text, option)
    except WrongOption as error:
        raise click.UsageError(str(error)) from None
    return host.strip("[]"), port
