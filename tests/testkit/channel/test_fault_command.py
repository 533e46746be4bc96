"""`barnabas fault` on the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

from confluent_kafka import Producer

from barnabas.testing import Broker
from tests.support.processes.commands import Ran, run_barnabas


def _fault(*arguments: str, control: str | None = None) -> Ran:
    environment = {key: value for key, value in os.environ.items() if key != "BARNABAS_CONTROL"}
    if control is not None:
        environment["BARNABAS_CONTROL"] = control
    return Ran(run_barnabas(["fault", *arguments], environment))


def _control(broker: Broker) -> str:
    return f"http://{broker.channel.token}@{broker.channel.url.removeprefix('http://')}"


def test_a_rule_is_added_listed_and_removed(barnabas_broker: Broker, tmp_path: Path) -> None:
    kafka = barnabas_broker.open()
    cluster = ("--cluster", str(kafka._link.number))
    control = _control(barnabas_broker)
    options = ("--api", "Produce", "--topic", "orders", "--count", "1", "--error", "not_leader_or_follower")
    added = _fault("add", *options, *cluster, "-o", "json", control=control)
    assert added.code == 0, added.stderr
    rule = json.loads(added.stdout)
    assert rule["requests"] == "api=Produce topic=orders count=1"
    assert rule["action"] == "error=NOT_LEADER_OR_FOLLOWER"
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce("orders", "a")
    assert producer.flush(10) == 0
    file = tmp_path / "control.json"
    file.write_text(json.dumps({"control": barnabas_broker.channel.url, "token": barnabas_broker.channel.token}))
    listed = _fault("list", "--control-file", str(file), *cluster)
    assert listed.code == 0, listed.stderr
    assert "error=NOT_LEADER_OR_FOLLOWER" in listed.stdout
    assert [entry["hits"] for entry in json.loads(_fault("list", *cluster, "-o", "json", control=control).stdout)] == [
        1
    ]
    removed = _fault("remove", str(rule["rule"]), *cluster, control=control)
    assert (removed.code, removed.stdout) == (0, f"removed {rule['rule']}\n")
    _fault("add", "--api", "Fetch", "--delay", "500ms", *cluster, control=control)
    _fault("add", "--api", "Fetch", "--throttle", "1s", *cluster, control=control)
    actions = [entry["action"] for entry in json.loads(_fault("list", *cluster, "-o", "json", control=control).stdout)]
    assert actions == ["delay=0.5", "throttle_ms=1000"]
    assert _fault("remove", "--all", *cluster, control=control).stdout == "all rules removed\n"
    empty = _fault("list", *cluster, control=control)
    assert (empty.stdout, empty.stderr) == ("", "no fault rules\n")
    kafka.close()


def test_mistakes_are_one_sentence(barnabas_broker: Broker) -> None:
    control = _control(barnabas_broker)
    cases = [
        (_fault("list"), 2, "Give --control-file FILE"),
        (_fault("add", "--api", "Nonsense", control=control), 1, "There is no API 'Nonsense'"),
        (_fault("add", "--api", "Produce", "--error", "NO_SUCH", control=control), 1, "Kafka has no error 'NO_SUCH'"),
        (_fault("add", "--api", "Produce", "--corrupt", control=control), 1, "corrupt is for Fetch"),
        (_fault("add", "--probability", "2", control=control), 2, "0<x<=1"),
        (_fault("remove", control=control), 2, "give the numbers of rules, or --all"),
        (_fault("remove", "99", control=control), 1, "There is no fault rule 99"),
    ]
    for done, code, text in cases:
        assert done.code == code, done.stderr
        assert text in done.stderr.replace("\n", " ")
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
