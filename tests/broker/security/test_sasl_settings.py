"""The config keys of SASL: what a broker starts with, and the sentence for what it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.broker.config.load import load
from barnabas.broker.config.sasl_logins import Credentials, controller_login, inter_broker_login
from barnabas.broker.config.sasl_settings import sasl_settings
from barnabas.wire.configdef import ConfigError
from barnabas.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tests.support.memory.secure_broker import MODULE, PLAIN_USERS, SETTINGS, SecureBroker

PREFIX = "listener.name.sasl_plaintext."
JAAS = f"{PREFIX}plain.sasl.jaas.config"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def refused(**changes: str) -> str:
    sets = {**SETTINGS, **{name.replace("__", "."): text for name, text in changes.items()}}
    with pytest.raises(ConfigError) as error:
        load({name: text for name, text in sets.items() if text != "-"}, {}, None)
    assert "secret" not in str(error.value)
    return str(error.value)


def test_a_mechanism_of_a_listener() -> None:
    settings = sasl_settings(
        load(
            {
                **SETTINGS,
                "sasl.enabled.mechanisms": "PLAIN",
                f"{PREFIX}sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
                "connections.max.reauth.ms": "1000",
                f"{PREFIX}plain.connections.max.reauth.ms": "2000",
                f"{PREFIX}sasl.server.max.receive.size": "777",
            },
            {},
            None,
        ),
        "SASL_PLAINTEXT",
    )
    assert settings.mechanisms == ("PLAIN", "SCRAM-SHA-512")
    assert settings.max_reauth_ms == {"PLAIN": 2000, "SCRAM-SHA-512": 1000}
    assert settings.max_receive_bytes == 777
    assert settings.plain_users == {"admin": "admin-secret", "alice": "alice-secret"}
    assert "secret" not in repr(settings)


def test_a_line_for_all_listeners() -> None:
    sets = {**SETTINGS, "sasl.jaas.config": PLAIN_USERS}
    del sets[JAAS]
    assert sasl_settings(load(sets, {}, None), "SASL_PLAINTEXT").plain_users["admin"] == "admin-secret"


def test_gssapi_is_refused_with_what_to_set() -> None:
    for text in ("-", "GSSAPI", "PLAIN,GSSAPI"):
        sentence = refused(sasl__enabled__mechanisms=text)
        assert sentence == (
            "Listener SASL_PLAINTEXT: sasl.enabled.mechanisms has GSSAPI (Kerberos; Kafka's default), which Barnabas "
            "does not support: set listener.name.sasl_plaintext.sasl.enabled.mechanisms to one or more of "
            "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"
        )


def test_a_mechanism_that_is_unknown_or_none() -> None:
    assert "has SCRAM-SHA-1, which" in refused(sasl__enabled__mechanisms="SCRAM-SHA-1")
    assert "is empty" in refused(sasl__enabled__mechanisms="")


def test_plain_needs_its_login_module() -> None:
    assert f"{JAAS} is not set" in refused(**{JAAS: "-"})
    assert "has the login module org" in refused(**{JAAS: f'{SCRAM_MODULE} username="a" password="secret";'})
    assert "not terminated by semi-colon" in refused(**{JAAS: f'{MODULE} user_a="secret"'})


def test_a_java_class_is_refused_unless_it_is_kafkas() -> None:
    name = f"{PREFIX}plain.sasl.server.callback.handler.class"
    assert "com.example.Handler, but Barnabas cannot load Java classes" in refused(**{name: "com.example.Handler"})
    own = "org.apache.kafka.common.security.plain.internals.PlainServerCallbackHandler"
    assert load({**SETTINGS, name: own}, {}, None).warnings == []


def test_an_unknown_mechanism_in_a_key_is_an_unknown_key() -> None:
    assert "Unknown config key" in refused(**{f"{PREFIX}digest-md5.sasl.jaas.config": "x"})


CLUSTER = {
    "process.roles": "broker",
    "node.id": "1",
    "listeners": "INTERNAL://127.0.0.1:0",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
    "listener.security.protocol.map": "INTERNAL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "inter.broker.listener.name": "INTERNAL",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "listener.name.internal.scram-sha-512.sasl.jaas.config": f'{SCRAM_MODULE} username="node" password="node-secret";',
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": PLAIN_USERS,
}


def test_the_logins_of_a_broker() -> None:
    config = load(CLUSTER, {}, None)
    assert inter_broker_login(config) == Credentials("SCRAM-SHA-512", "node", "node-secret")
    assert controller_login(config) == Credentials("PLAIN", "admin", "admin-secret")
    assert "secret" not in repr(controller_login(config))
    without = {**CLUSTER, "listener.security.protocol.map": "INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"}
    assert inter_broker_login(load(without, {}, None)) is None
    assert controller_login(load(without, {}, None)) is None


BEARER = {
    "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    "listener.name.internal.oauthbearer.sasl.jaas.config": (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
    ),
}


def test_a_broker_logs_in_with_the_token_of_a_file() -> None:
    url = {"listener.name.internal.oauthbearer.sasl.oauthbearer.token.endpoint.url": "file:///of%20node"}
    login = inter_broker_login(load(CLUSTER | BEARER | url, {}, None))
    assert login is not None
    assert (login.mechanism, login.token_file) == ("OAUTHBEARER", "/of node")
    for wrong in ("", "https://login.example.com/token", "file://host/path"):
        with pytest.raises(ConfigError, match="must be file:///PATH of a file with the token"):
            load(CLUSTER | BEARER | {"sasl.oauthbearer.token.endpoint.url": wrong}, {}, None)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("sasl.mechanism.controller.protocol", "GSSAPI", "sasl.mechanism.controller.protocol=GSSAPI is not supported"),
        (
            "sasl.mechanism.inter.broker.protocol",
            "OAUTHBEARER",
            "listener.name.internal.oauthbearer.sasl.jaas.config is not set",
        ),
        (
            "listener.name.controller.plain.sasl.jaas.config",
            f'{MODULE} user_a="secret";',
            "has no username and password",
        ),
    ],
)
def test_a_broker_that_could_not_log_in_does_not_start(name: str, text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        load({**CLUSTER, name: text}, {}, None)


def test_secrets_are_not_described(tmp_path: Path) -> None:
    secure = SecureBroker(tmp_path / "data", {"sasl.jaas.config": PLAIN_USERS})
    ask = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)],
        include_synonyms=True,
    )
    response = secure.client().ask(ask, 4, DescribeConfigsResponse)
    entries = {entry.name: entry for entry in response.results[0].configs}
    for name in (JAAS, "sasl.jaas.config"):
        assert (entries[name].value, entries[name].is_sensitive, entries[name].read_only) == (None, True, True)
        assert entries[name].config_source == 4
    assert "-secret" not in repr(response)
    secure.close()
