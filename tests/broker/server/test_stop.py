"""A signal to stop is never lost, whatever the broker is doing when it comes."""

from __future__ import annotations

import signal
from pathlib import Path

import trio

from barnabas.broker.config.load import load
from barnabas.broker.server import Server


def test_a_signal_while_a_broker_joins_its_cluster_stops_it(tmp_path: Path) -> None:
    """It came between the unfencing and the ready line: the broker announced itself, and served until it was killed."""

    config = {"listeners": "PLAINTEXT://127.0.0.1:0"}

    async def stop_during_join(turns: int) -> None:
        server = Server(load(config | {"log.dirs": str(tmp_path / str(turns))}, {}, None, "dev"))
        server.start()
        send, signals = trio.open_memory_channel[int](1)

        async def join() -> None:
            send.send_nowait(signal.SIGTERM)
            for _ in range(turns):
                await trio.lowlevel.checkpoint()

        server._member = object()  # type: ignore[assignment]
        server._join = join  # type: ignore[method-assign]
        with trio.fail_after(30):
            if await server.has_joined(signals):
                await server.wait_for_stop(signals)
        server._member = None
        server.close()

    for turns in range(6):
        trio.run(stop_during_join, turns)
