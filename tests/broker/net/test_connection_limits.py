"""Limits of connections as in Kafka: number and rate, of the broker, a listener, an address (KIP-402, KIP-612)."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from math import inf
from pathlib import Path

import pytest

from barnabas.broker.config.load import load
from barnabas.broker.config.server_config import ServerConfig
from barnabas.broker.net.connection_quotas import ConnectionQuotas
from barnabas.broker.net.limits import Limits, ListenerLimits
from barnabas.broker.start.connection_limits import connection_limits, look_up, named_hosts
from barnabas.wire.configdef import ConfigError
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from tests.broker.turns import Turns, requests
from tests.support.cases import for_each
from tests.support.memory.broker import MemoryBroker
from tests.support.sockets import is_ended_by_peer

TWO = "INTERNAL://127.0.0.1:0,EXTERNAL://127.0.0.1:0"
PROTOCOLS = {"listeners": TWO, "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT"}


def configured(**sets: str) -> ServerConfig:
    return load({name.replace("__", "."): text for name, text in sets.items()}, {}, None, "dev")


class Serving(Turns):
    """Turns with a second listener; the first one's name is PLAINTEXT."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self.second = self.listen("SECOND")


@pytest.fixture
def serving(request: pytest.FixtureRequest) -> Iterator[Serving]:
    serving = Serving(request.param)
    yield serving
    serving.close()


def limited(**limits) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("serving", [Limits(**limits)], indirect=True, ids=[""])


@limited(max_connections=2)
def test_connections_above_the_limit_wait_and_are_not_closed(serving: Serving) -> None:
    peers = [serving.dial() for _ in range(4)]
    assert serving.take_turns() == 2
    for peer in peers:
        peer.sendall(requests(1, 0))
    peers[0].close()
    peers[1].close()
    serving.until(lambda: all(serving.count(peer) for peer in peers[2:]))
    assert len(serving.reactor.connections) == 2


@limited(listeners={"SECOND": ListenerLimits(max_connections=1)})
def test_a_listener_has_a_limit_of_its_own(serving: Serving) -> None:
    for _ in range(3):
        serving.dial()
        serving.dial(serving.second)
    assert serving.take_turns() == 4


@limited(max_connections=2, inter_broker_listener="SECOND")
def test_the_inter_broker_listener_is_exempt_and_the_idlest_other_connection_is_closed(serving: Serving) -> None:
    idle = serving.connect()
    serving.time += 1
    active = serving.connect()
    broker = serving.dial(serving.second)
    assert serving.take_turns() == 2
    assert is_ended_by_peer(idle)
    for peer in (active, broker):
        peer.sendall(requests(1, 0))
    serving.until(lambda: serving.count(active) and serving.count(broker))


@limited(max_connections_per_ip=1, max_connections_of_ip={"127.0.0.1": 2})
def test_an_address_may_have_a_limit_of_its_own(serving: Serving) -> None:
    peers = [serving.dial() for _ in range(3)]
    assert serving.take_turns() == 2
    assert is_ended_by_peer(peers[2])


@limited(creation_rate=2, rate_window_s=3.0)
def test_connections_above_the_rate_wait(serving: Serving) -> None:
    """The rate is measured over a window, so that a burst is allowed, as in Kafka."""
    for _ in range(10):
        serving.dial()
    assert serving.take_turns() == 6
    assert serving.advance(0.4) == 6
    assert serving.advance(0.1) == 7
    assert serving.advance(1.0) == 9
    assert serving.advance(60.0) == 10


@limited(creation_rate=1, rate_window_s=1.0, inter_broker_listener="SECOND")
def test_the_rate_of_the_broker_does_not_limit_the_inter_broker_listener(serving: Serving) -> None:
    for _ in range(3):
        serving.dial()
        serving.dial(serving.second)
    assert serving.take_turns() == 4


@limited(listeners={"SECOND": ListenerLimits(creation_rate=1)}, rate_window_s=1.0)
def test_a_listener_has_a_rate_of_its_own(serving: Serving) -> None:
    for _ in range(3):
        serving.dial()
        serving.dial(serving.second)
    assert serving.take_turns() == 4


@limited(max_connections=1, creation_rate=0)
def test_changed_limits_apply_to_connections_that_wait(serving: Serving) -> None:
    for _ in range(3):
        serving.dial()
    assert serving.take_turns() == 0
    serving.reactor.set_limits(Limits(max_connections=2))
    assert serving.take_turns() == 2
    serving.reactor.set_limits(Limits())
    assert serving.take_turns() == 3


def test_a_rate_of_zero_holds_until_it_is_changed() -> None:
    quotas = ConnectionQuotas(Limits(creation_rate=0), 100.0)
    held = quotas.hold("PLAINTEXT", 1000.0)
    assert held is not None
    assert held[0] == inf


@limited(max_connections=1)
def test_listeners_that_are_held_are_closed_by_a_stop(serving: Serving) -> None:
    serving.dial()
    serving.dial()
    serving.take_turns()
    serving.reactor.acceptor.close()
    serving.reactor.stop_reading()
    assert serving.take_turns() == 0


class TestConfig:
    def test_limits_of_listeners(self) -> None:
        limits = connection_limits(
            load(
                {
                    **PROTOCOLS,
                    "max.connections": "10",
                    "listener.name.external.max.connections": "3",
                    "listener.name.internal.max.connection.creation.rate": "7",
                    "inter.broker.listener.name": "INTERNAL",
                    "quota.window.num": "4",
                },
                {},
                None,
                "dev",
            ),
            {},
        )
        assert limits.listeners["EXTERNAL"].max_connections == 3
        assert limits.listeners["INTERNAL"].max_connections == 10
        assert limits.listeners["INTERNAL"].creation_rate == 7
        assert limits.inter_broker_listener == "INTERNAL"
        assert limits.rate_window_s == 3

    def test_the_only_listener_is_not_exempt(self) -> None:
        assert connection_limits(configured(), {}).inter_broker_listener is None

    def test_overrides_are_of_hosts_and_addresses(self) -> None:
        config = configured(max__connections__per__ip__overrides="localhost:5, 10.0.0.7:6,[::1]:7")
        hosts = named_hosts(config)
        assert hosts == ["localhost"]
        limits = connection_limits(config, look_up(hosts)).max_connections_of_ip
        assert limits["127.0.0.1"] == 5
        assert limits["10.0.0.7"] == 6

    @for_each(
        ("sets", "sentence"),
        [
            ({"max.connections.per.ip.overrides": "127.0.0.1"}, "is not host:number"),
            ({"max.connections.per.ip.overrides": "127.0.0.1:-1"}, "is not host:number"),
            ({"max.connections.per.ip.overrides": "127.0.0.1:" + "9" * 5000}, "is not host:number"),
            ({"listeners": "PLAINTEXT://:" + "9" * 5000}, "NAME://host:port"),
            ({"max.connections.per.ip": "0"}, "only if max.connections.per.ip.overrides"),
            ({"inter.broker.listener.name": "OTHER"}, "must be a listener name"),
            ({"listener.name.plaintext.max.connections": "-1"}, "at least 0"),
            ({"listener.name.plaintext.max.connections.per.ip": "1"}, "Unknown config key"),
        ],
    )
    def test_values_with_which_a_broker_does_not_start(self, sets: dict[str, str], sentence: str) -> None:
        with pytest.raises(ConfigError, match=sentence):
            load(sets, {}, None, "dev")

    def test_a_key_of_a_listener_that_does_not_exist_is_a_warning(self) -> None:
        warnings = load({"listener.name.other.max.connections": "1"}, {}, None, "dev").warnings
        assert any("there is no listener OTHER" in warning for warning in warnings)


class TestDynamic:
    """Changes with IncrementalAlterConfigs."""

    def change(self, memory: MemoryBroker, name: str, value: str | None, broker: str = "1") -> int:
        change = IncrementalAlterConfigsRequestAlterableConfig(
            name=name, config_operation=0 if value is not None else 1, value=value
        )
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=4, resource_name=broker, configs=[change]
        )
        response = memory.client().ask(
            IncrementalAlterConfigsRequest(resources=[resource]), 1, IncrementalAlterConfigsResponse
        )
        return response.responses[0].error_code

    @pytest.mark.parametrize("broker", ["1", ""])
    def test_the_limit_of_a_listener(self, tmp_path: Path, broker: str) -> None:
        memory = MemoryBroker(tmp_path, {**PROTOCOLS, "max.connections": "10"})
        changed: list[set[str]] = []
        memory.broker.controller.on_config_change.append(changed.append)
        name = "listener.name.external.max.connections"
        assert self.change(memory, name, "3", broker) == 0
        assert changed == [{name}]
        limits = connection_limits(memory.broker.config, {})
        assert limits.listeners["EXTERNAL"].max_connections == 3
        resource = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
        response = memory.client().ask(DescribeConfigsRequest(resources=[resource]), 4, DescribeConfigsResponse)
        assert [entry.value for entry in response.results[0].configs if entry.name == name] == ["3"]
        assert self.change(memory, name, None, broker) == 0
        assert connection_limits(memory.broker.config, {}).listeners["EXTERNAL"].max_connections == 10
        memory.close()

    @for_each(
        ("name", "value", "code"),
        [
            ("max.connections.per.ip.overrides", "nonsense", ErrorCode.INVALID_REQUEST),
            ("max.connections.per.ip", "0", ErrorCode.INVALID_REQUEST),
            ("listener.name.other.max.connections", "3", ErrorCode.INVALID_CONFIG),
            ("listener.name.external.max.connections", "-3", ErrorCode.INVALID_REQUEST),
            ("listener.name.external.max.connections.per.ip", "3", ErrorCode.INVALID_CONFIG),
        ],
    )
    def test_what_is_rejected(self, tmp_path: Path, name: str, value: str, code: ErrorCode) -> None:
        memory = MemoryBroker(tmp_path, PROTOCOLS)
        assert self.change(memory, name, value) == code
        memory.close()


def test_a_host_that_cannot_be_looked_up_has_no_limit(monkeypatch: pytest.MonkeyPatch, caplog) -> None:
    def unknown(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert look_up(["nowhere"]) == {"nowhere": ()}
    assert "nowhere" in caplog.text
