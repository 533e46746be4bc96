"""Waits are told, a server that never answers does not use up the time of the others, names are suggested."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from barnabas.cli.connect import command_cluster
from tests.support.cases import for_each


@pytest.fixture
def silent_server() -> Iterator[str]:
    """The address of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def test_a_wait_is_told_with_its_end(call, monkeypatch: pytest.MonkeyPatch, silent_server: str) -> None:
    monkeypatch.setattr(command_cluster, "SILENT_OFF_TERMINAL_S", 0.05)
    ran = call("topic", "list", "-b", silent_server, "--timeout", "0.5")
    assert (ran.code, ran.stdout) == (4, "")
    assert ran.stderr.splitlines() == [
        f"waiting for {silent_server}, until 0.5 s have passed (--timeout)",
        f"barnabas: {silent_server} did not answer ApiVersions in time",
    ]


def test_nothing_is_told_of_short_waits(call, silent_server: str) -> None:
    assert call("cluster", "info").ok().stderr == ""
    ran = call("topic", "list", "-b", silent_server, "--timeout", "0.1")
    assert (ran.code, ran.stderr) == (4, f"barnabas: {silent_server} did not answer ApiVersions in time\n")


def test_a_server_that_never_answers_leaves_time_for_the_next(call, broker, silent_server: str) -> None:
    both = f"{silent_server},{broker.bootstrap}"
    assert call("cluster", "info", "-b", both, "--timeout", "4", "-o", "json").ok().json["brokers"]


@for_each(
    "arguments", [("topic", "describe"), ("consume",), ("config", "get", "topic"), ("producers",), ("topic", "analyze")]
)
def test_the_most_similar_name_is_suggested(call, topic, arguments: tuple[str, ...]) -> None:
    call("topic", "create", topic).ok()
    ran = call(*arguments, f"{topic}s")
    assert ran.code == 3
    assert f"there is no topic '{topic}s'; did you mean {topic}?" in ran.stderr
