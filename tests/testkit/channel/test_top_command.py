"""The clients in `barnabas top`: counted by the control channel, and left out without one."""

from __future__ import annotations

from confluent_kafka import Producer

from barnabas.kit.traffic.recorder import MAX_CLIENTS
from barnabas.testing import Broker
from tests.support.processes.terminal import COMMAND, Terminal


def test_clients_and_their_requests_are_counted_and_shown(barnabas_broker: Broker) -> None:
    kafka = barnabas_broker.open()
    with kafka.faults.add(api="Produce", nth=1, error="NOT_LEADER_OR_FOLLOWER"):
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "client.id": "shop"})
        producer.produce("orders", "a")
        assert producer.flush(10) == 0
    counted = {row["client_id"]: row for row in kafka._link.perform("clients")["clients"]}
    shop = counted["shop"]
    assert shop["requests"] == sum(shop["apis"].values())
    assert (shop["apis"]["Produce"], shop["errors"] >= 1) == (2, True)
    assert len(counted) <= MAX_CLIENTS

    control = f"http://{barnabas_broker.channel.token}@{barnabas_broker.channel.url.removeprefix('http://')}"
    options = ("--control", control, "--cluster", str(kafka._link.number), "--interval", "0.2")
    with Terminal(str(COMMAND), "top", "-b", kafka.bootstrap_servers, *options, columns=80, lines=24) as terminal:
        terminal.wait_for("4 Clients")
        terminal.type("c")
        terminal.wait_until(r"(?m)^.shop ")
        terminal.type("q")
        assert terminal.to_end() == 0
    with Terminal(str(COMMAND), "top", "-b", kafka.bootstrap_servers, columns=80, lines=24) as terminal:
        terminal.wait_for("[1 All]")
        assert "Clients" not in terminal.text
        terminal.type("q")
        assert terminal.to_end() == 0
    kafka.close()
