"""A broker's configuration: layers and precedence, profiles, environment, listeners, errors in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from barnabas.broker.config.environment import key_of, settings_from_environment
from barnabas.broker.config.keys.general import DEFAULT_REPLICATION_FACTOR, NUM_PARTITIONS
from barnabas.broker.config.keys.groups import GROUP_INITIAL_REBALANCE_DELAY_MS, OFFSETS_TOPIC_REPLICATION_FACTOR
from barnabas.broker.config.keys.network import MAX_CONNECTIONS
from barnabas.broker.config.keys.own import LOG_SYNC
from barnabas.broker.config.listeners import Endpoint
from barnabas.broker.config.load import load
from barnabas.broker.config.profiles import DEV
from barnabas.broker.config.server_config import ServerConfig
from barnabas.wire.configdef import ConfigError
from tests.support.cases import for_each


def config(
    sets: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None, profile: str = "dev"
) -> ServerConfig:
    return load(sets or {}, environment or {}, None, profile)


# Layers


def test_command_line_wins_over_environment_over_file_over_profile_over_default(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=4\ndefault.replication.factor=1\ngroup.initial.rebalance.delay.ms=7\n")
    environment = {"KAFKA_NUM_PARTITIONS": "5"}
    assert load({"num.partitions": "6"}, environment, str(file))[NUM_PARTITIONS] == 6
    assert load({}, environment, str(file))[NUM_PARTITIONS] == 5
    assert load({}, {}, str(file))[NUM_PARTITIONS] == 4
    assert load({}, {}, None)[NUM_PARTITIONS] == 1
    assert load({}, {}, str(file))[GROUP_INITIAL_REBALANCE_DELAY_MS] == 7
    assert load({}, {}, None)[GROUP_INITIAL_REBALANCE_DELAY_MS] == 0
    assert load({}, {}, None, "kafka")[GROUP_INITIAL_REBALANCE_DELAY_MS] == 3000


def test_dynamic_configs_win_over_static_ones_and_a_brokers_own_over_all_brokers() -> None:
    c = config({"max.connections": "5"})
    assert c.set_dynamic({}, {"max.connections": "6"}) == {"max.connections"}
    assert c[MAX_CONNECTIONS] == 6
    assert c.set_dynamic({"max.connections": "7"}, {"max.connections": "6"}) == {"max.connections"}
    assert c[MAX_CONNECTIONS] == 7
    assert c.text_layers("max.connections") == [(2, "7"), (3, "6"), (4, "5"), (5, "2147483647")]
    assert c.set_dynamic({"max.connections": "7"}, {}) == set()
    assert c.set_dynamic({}, {}) == {"max.connections"}
    assert c[MAX_CONNECTIONS] == 5


def test_settings_of_the_user_are_distinguished_from_defaults() -> None:
    c = config({"num.partitions": "1"})
    assert c.static.get("num.partitions") == "1"
    assert c.static.get("offsets.topic.replication.factor") is None


def test_defaults_can_be_set_at_start() -> None:
    from barnabas.broker.config.keys.log import LOG_DIRS

    c = config()
    assert c.log_dirs == ()
    c.set_default(LOG_DIRS, "/data")
    assert c.log_dirs == ("/data",)
    assert c.text_layers("log.dirs") == [(5, "/data")]


# Errors and warnings


def test_unknown_key_on_the_command_line_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"Unknown config key num\.partition on the command line"):
        config({"num.partition": "1"})


def test_unknown_keys_elsewhere_are_named_in_warnings(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("zookeeper.connect=localhost:2181\n")
    c = load({}, {"KAFKA_MY_OWN": "1"}, str(file))
    assert c.warnings == [
        "Unknown config key my.own in the environment is ignored",
        f"Unknown config key zookeeper.connect in the file {file} is ignored",
    ]


def test_an_unused_key_is_named_in_one_warning() -> None:
    c = config({"num.io.threads": "4"})
    assert c.warnings == ["num.io.threads is known to Kafka, not acted on by Barnabas"]


def test_keys_of_one_listener_are_known() -> None:
    c = config({"listener.name.internal.ssl.client.auth": "required", "listener.name.internal.ssl.provider": "x"})
    assert sorted(c.warnings) == [
        "listener.name.internal.ssl.client.auth has no effect: there is no listener INTERNAL",
        "listener.name.internal.ssl.provider is known to Kafka, not acted on by Barnabas",
    ]


_BROKER = {
    "process.roles": "broker",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
}
_CONTROLLER = {
    "process.roles": "controller",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://localhost:9093",
}


@for_each(
    ("sets", "sentence"),
    [
        ({"num.partitions": "none"}, "Invalid value none for configuration num.partitions: Not a number of type INT"),
        ({"num.partitions": "0"}, "Invalid value 0 for configuration num.partitions: Value must be at least 1"),
        ({"listeners": "9092"}, "Error creating broker listeners from '9092'"),
        ({"listeners": "PLAINTEXT://:99999"}, "Error creating broker listeners"),
        ({"listeners": "A://:1,A://:2"}, "Each listener must have a different name"),
        ({"listeners": "PLAINTEXT://:1,SSL://:1"}, "Each listener must have a different port"),
        ({"listeners": "MINE://:1"}, "No security protocol defined for listener MINE"),
        ({"listeners": "SASL_SSL://:1"}, "Listener SASL_SSL: sasl.enabled.mechanisms has GSSAPI"),
        ({"listeners": "CONTROLLER://:9093"}, "at least one listener for clients"),
        ({"listener.security.protocol.map": "PLAINTEXT"}, "not NAME:PROTOCOL"),
        ({"advertised.listeners": "OTHER://h:1"}, "OTHER is not in listeners"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "nonroutable meta-address 0.0.0.0"),
        ({"process.roles": "zookeeper"}, "zookeeper"),
        ({"process.roles": "broker"}, "controller.listener.names must contain at least one value"),
        (
            {"process.roles": "broker", "controller.listener.names": "C"},
            "either controller.quorum.bootstrap.servers must contain the set of bootstrap controllers",
        ),
        (
            {**_BROKER, "listeners": "PLAINTEXT://:1,CONTROLLER://:2"},
            "controller.listener.names must not contain a value appearing in the 'listeners'",
        ),
        ({**_BROKER, "controller.quorum.bootstrap.servers": "host"}, "Failed to parse host and port from host"),
        ({"process.roles": "controller"}, "controller.listener.names must contain at least one value"),
        (
            {**_CONTROLLER, "listeners": "PLAINTEXT://:1,CONTROLLER://:2"},
            "The listeners config must only contain KRaft controller listeners",
        ),
        (
            {**_CONTROLLER, "controller.listener.names": "CONTROLLER,OTHER"},
            "controller.listener.names must only contain values appearing in the 'listeners' configuration",
        ),
        ({**_CONTROLLER, "listeners": "CONTROLLER://:1,CONTROLLER://:2"}, "Each listener must have a different name"),
        (
            {**_CONTROLLER, "controller.quorum.voters": "7@localhost:1"},
            "the node id 1 must be included in the set of voters controller.quorum.voters=[7]",
        ),
        ({**_CONTROLLER, "controller.quorum.voters": "localhost:1"}, "Failed to parse voter ID"),
        ({"controller.quorum.voters": "1@a:1,2@b:1"}, "has several nodes"),
    ],
)
def test_an_invalid_setting_is_one_sentence(sets: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        config(sets)
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_unreadable_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Cannot read the config file .*missing: No such file or directory"):
        load({}, {}, str(tmp_path / "missing"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="it is not UTF-8 text"):
        load({}, {}, str(tmp_path / "binary"))


MEMBER = {
    "process.roles": "broker",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
}


def test_a_broker_under_other_controllers_has_kafkas_defaults(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in MEMBER.items()))
    for settings in (
        load(MEMBER, {}, None),
        load({}, {}, str(file)),
        load({}, {"KAFKA_PROCESS_ROLES": "broker"}, str(file)),
    ):
        assert settings.profile == "kafka"
        assert {name: settings.text(name) for name in DEV} == dict.fromkeys(DEV)
        assert settings[OFFSETS_TOPIC_REPLICATION_FACTOR] == 3
        assert settings[GROUP_INITIAL_REBALANCE_DELAY_MS] == 3000


def test_whoever_starts_a_whole_cluster_gives_its_brokers_defaults() -> None:
    settings = load(MEMBER, {}, None, defaults={"offsets.topic.replication.factor": "2"})
    assert settings[OFFSETS_TOPIC_REPLICATION_FACTOR] == 2
    assert settings[GROUP_INITIAL_REBALANCE_DELAY_MS] == 0


def test_an_unknown_profile_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match=r"Unknown profile prod\. Valid profiles are dev, kafka"):
        config(profile="prod")


# Profiles


def test_dev_reduces_replicas_to_one_with_a_warning() -> None:
    c = config({"offsets.topic.replication.factor": "3", "default.replication.factor": "2"})
    assert c[OFFSETS_TOPIC_REPLICATION_FACTOR] == 1
    assert c[DEFAULT_REPLICATION_FACTOR] == 1
    assert (
        "offsets.topic.replication.factor=3 is larger than the number of brokers: 1 is used (profile dev)" in c.warnings
    )


def test_kafka_keeps_kafkas_defaults() -> None:
    c = config(profile="kafka")
    assert c[OFFSETS_TOPIC_REPLICATION_FACTOR] == 3
    assert c.listeners == [Endpoint("PLAINTEXT", "", 9092)]
    assert config().listeners == [Endpoint("PLAINTEXT", "127.0.0.1", 9092)]


# Environment


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("NUM_PARTITIONS", "num.partitions"),
        ("LISTENER_NAME_A__B_SSL___KEY", "listener.name.a_b.ssl-key"),
        ("SSL_A___B__C_D", "ssl.a-b_c.d"),
    ],
)
def test_variables_are_named_as_in_kafkas_image(variable: str, key: str) -> None:
    assert key_of(variable) == key


def test_keys_of_barnabas_have_variables() -> None:
    settings, ignored = settings_from_environment({"BARNABAS_LOG_SYNC": "os", "BARNABAS_EXAMPLES": "9", "PATH": "/"})
    assert settings == {"barnabas.log.sync": "os"}
    assert ignored == []


def test_variables_of_kafkas_jvm_are_named_as_ignored() -> None:
    c = config(environment={"KAFKA_HEAP_OPTS": "-Xmx1g", "KAFKA_JMX_PORT": "9999", "KAFKA_": "x"})
    assert c.warnings == [
        "KAFKA_HEAP_OPTS is for Kafka's JVM and ignored",
        "KAFKA_JMX_PORT is for Kafka's JVM and ignored",
    ]


def test_the_cluster_id_comes_from_the_environment() -> None:
    assert config(environment={"CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw"}).cluster_id == "4L6g3nShT-eMCtK--X86sw"
    assert config().cluster_id is None


def test_the_environment_of_kafkas_compose_example_is_accepted() -> None:
    c = config(
        environment={
            "KAFKA_NODE_ID": "1",
            "KAFKA_PROCESS_ROLES": "broker,controller",
            "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://localhost:9093",
            "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:9092",
            "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
            "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
            "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        }
    )
    assert c.listeners == [Endpoint("PLAINTEXT", "0.0.0.0", 9092)]
    assert c.advertised_listeners == {"PLAINTEXT": Endpoint("PLAINTEXT", "localhost", 9092)}
    assert c.node_id == 1
    assert c.controller_listeners == [Endpoint("CONTROLLER", "localhost", 9093)]
    assert not c.is_standalone


def test_a_controller_listener_is_opened_only_with_the_role() -> None:
    listeners = "PLAINTEXT://:9092,CONTROLLER://localhost:9093"
    alone = config({"listeners": listeners})
    assert alone.is_standalone
    assert (
        "Controller listener CONTROLLER://localhost:9093 is not opened: the controller is in this process"
        in alone.warnings
    )
    assert config({"process.roles": "broker,controller"}).is_standalone
    broker = config(_BROKER)
    assert (broker.roles, broker.is_standalone) == ({"broker"}, False)
    controller = config(_CONTROLLER)
    assert controller.roles == {"controller"}
    assert controller.listeners == []
    assert controller.controller_listeners == [Endpoint("CONTROLLER", "localhost", 9093)]


# Values computed from settings


def test_several_listeners_may_map_to_plaintext() -> None:
    c = config(
        {
            "listeners": "INTERNAL://[::1]:29092,EXTERNAL://:9092",
            "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT",
            "advertised.listeners": "EXTERNAL://broker.example:19092",
        }
    )
    assert c.listeners == [Endpoint("INTERNAL", "::1", 29092), Endpoint("EXTERNAL", "", 9092)]
    assert str(c.listeners[0]) == "INTERNAL://[::1]:29092"
    assert list(c.advertised_listeners) == ["EXTERNAL"]


@for_each(
    ("sets", "node_id"),
    [({}, 1), ({"node.id": "5"}, 5), ({"broker.id": "7"}, 7), ({"node.id": "5", "broker.id": "7"}, 5)],
)
def test_the_node_id_may_have_its_older_name(sets: dict[str, str], node_id: int) -> None:
    assert config(sets).node_id == node_id


@pytest.mark.parametrize(
    ("sets", "dirs"), [({}, ()), ({"log.dir": "/a"}, ("/a",)), ({"log.dir": "/a", "log.dirs": "/b,/c"}, ("/b", "/c"))]
)
def test_log_dirs_win_over_log_dir(sets: dict[str, str], dirs: tuple[str, ...]) -> None:
    assert config(sets).log_dirs == dirs


@for_each(
    ("sets", "defaults"),
    [
        ({}, {}),
        ({"log.segment.bytes": "1048576"}, {"segment.bytes": "1048576"}),
        ({"log.retention.hours": "2"}, {"retention.ms": "7200000"}),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, {"retention.ms": "180000"}),
        ({"log.retention.hours": "2", "log.retention.ms": "4"}, {"retention.ms": "4"}),
        ({"log.retention.hours": "-1"}, {"retention.ms": "-1"}),
        ({"log.cleanup.policy": "delete, compact"}, {"cleanup.policy": "delete,compact"}),
        ({"log.flush.scheduler.interval.ms": "9"}, {"flush.ms": "9"}),
        ({"min.insync.replicas": "2"}, {"min.insync.replicas": "1"}),
    ],
)
def test_topics_inherit_the_brokers_settings(sets: dict[str, str], defaults: dict[str, str]) -> None:
    assert config(sets).topic_defaults() == defaults


# Flush policy


@for_each(
    ("sets", "is_named", "policy"),
    [
        ({}, True, "always"),
        ({}, False, "os"),
        ({"barnabas.log.sync": "os"}, True, "os"),
        ({"barnabas.log.sync": "always"}, False, "always"),
    ],
)
def test_the_default_of_the_flush_policy_depends_on_the_data_directory(
    sets: Mapping[str, str], is_named: bool, policy: str
) -> None:
    c = config(sets)
    c.set_default_flush_policy(is_temporary=not is_named)
    assert c[LOG_SYNC] == policy
    assert "flush.ms" not in c.topic_defaults()


def test_interval_is_a_second_unless_kafkas_keys_are_set() -> None:
    for sets, flush_ms in (
        ({}, "1000"),
        ({"log.flush.interval.ms": "250"}, "250"),
        ({"log.flush.scheduler.interval.ms": "125"}, "125"),
    ):
        c = config({"barnabas.log.sync": "interval", **sets})
        c.set_default_flush_policy(is_temporary=False)
        assert c.topic_defaults()["flush.ms"] == flush_ms


def test_an_unknown_flush_policy_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"sometimes .*barnabas\.log\.sync"):
        config({"barnabas.log.sync": "sometimes"})
