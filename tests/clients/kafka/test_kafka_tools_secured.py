"""Kafka's own tools 4.3.1 over SASL_SSL, with an authorizer: users, ACLs, quotas, tokens, topics, groups, consoles.

Each tool gets a client.properties with --command-config. `admin` is the super user; the users that a test makes may
nothing but what its ACLs say.
"""

from __future__ import annotations

import itertools
import re
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.jvm import kafka_scripts as jvm
from tests.support.jvm import kafka_tools
from tests.support.processes.secured import MODULES, Secured
from tests.support.security.certificates import Authority
from tests.support.transcript import Output
from tests.support.waiting import wait_for

pytestmark = [
    pytest.mark.soak,
    pytest.mark.jvm,
    pytest.mark.timeout(300),
]
WAIT_MS = 60_000
"""How long a console consumer waits for the records that a test has written."""
WRITE = ("kafka-console-producer", "--sync", "--topic")
"""Without --sync the tool logs refused requests, and ends with 0."""
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
LOGIN_MODULES = {
    "PLAIN": f"{MODULES}.plain.PlainLoginModule",
    "OAUTHBEARER": f"{MODULES}.oauthbearer.OAuthBearerLoginModule",
    **dict.fromkeys(SCRAM, f"{MODULES}.scram.ScramLoginModule"),
}


@pytest.fixture(scope="module")
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker with a listener of each protocol."""
    secured_server = Secured(tmp_path_factory.mktemp("tools"), str(request.config.getoption("--against")))
    with secured_server.server:
        yield secured_server


class User:
    """A user of the tools: a client.properties and a listener."""

    def __init__(self, bootstrap: str, path: Path, name: str, properties: dict[str, str]) -> None:
        self.bootstrap, self.path, self.name = bootstrap, path, name
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))

    def run(self, tool: str, *arguments: object, stdin: str = "") -> Output:
        """Run a tool, whatever comes out."""
        words = [tool, "--bootstrap-server", self.bootstrap, "--command-config", str(self.path)]
        return jvm.run([*words, *map(str, arguments)], stdin)

    def __call__(self, tool: str, *arguments: object, stdin: str = "") -> str:
        """Run a tool that must succeed; its output."""
        output = self.run(tool, *arguments, stdin=stdin)
        assert output.code == 0, output
        return "\n".join(output.out)

    def refused(self, tool: str, *arguments: object, stdin: str = "") -> str:
        """Run a tool that must not succeed; all that it says."""
        output = self.run(tool, *arguments, stdin=stdin)
        text = "\n".join(output.out + output.errors)
        assert output.code != 0, output
        return text

    def produce(self, topic: str, *values: str) -> None:
        """Write with the console producer."""
        self(*WRITE, topic, stdin="".join(f"{value}\n" for value in values))

    def consume(self, topic: str, count: int, *arguments: object) -> list[str]:
        """Read that many records with the console consumer."""
        options = ("--topic", topic, "--from-beginning", "--max-messages", count, "--timeout-ms", WAIT_MS)
        return self("kafka-console-consumer", *options, *arguments).splitlines()


MakeUser = Callable[..., User]


@pytest.fixture(scope="module")
def user(secured: Secured) -> MakeUser:
    """A factory: `user(name, password, mechanism="PLAIN", protocol="SASL_SSL", login="...", **properties)`."""
    numbers = itertools.count(1)

    def make(
        name: str, password: str, mechanism: str = "PLAIN", protocol: str = "SASL_SSL", login: str = "", **more: str
    ) -> User:
        login = login or f'username="{name}" password="{password}"'
        properties = secured.properties(protocol)
        if protocol.startswith("SASL"):
            jaas = f"{LOGIN_MODULES[mechanism]} required {login};"
            properties |= {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
        if protocol.endswith("SSL"):
            properties |= {"ssl.truststore.type": "PEM"}
        properties |= {key.replace("_", "."): value for key, value in more.items()}
        path = secured.folder / f"{next(numbers)}.properties"
        return User(secured.address(protocol), path, name, properties)

    return make


@pytest.fixture(scope="module")
def admin(user: MakeUser) -> User:
    return user("admin", "admin-secret")


@pytest.fixture
def somebody(admin: User, user: MakeUser, topic_name: Callable[..., str]) -> User:
    """A new user with SCRAM, without any ACL."""
    return scram_user(admin, user, topic_name("user"), "SCRAM-SHA-512")


def scram_user(admin: User, user: MakeUser, name: str, mechanism: str) -> User:
    """A user whose credential kafka-configs makes."""
    users = ("--entity-type", "users", "--entity-name", name)
    added = ("--add-config", f"{mechanism}=[iterations=4096,password={name}-secret]")
    assert f"Completed updating config for user {name}." in admin("kafka-configs", "--alter", *users, *added)
    return user(name, f"{name}-secret", mechanism)


@pytest.fixture
def made_topic(admin: User, topic: str) -> str:
    admin("kafka-topics", "--create", "--topic", topic, "--partitions", 1, "--replication-factor", 1)
    return topic


# ---------------------------------------------------------------- authentication


@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAM, "OAUTHBEARER"])
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_console_clients(admin: User, user: MakeUser, made_topic: str, protocol: str, mechanism: str) -> None:
    """Write and read with each mechanism."""
    if mechanism in SCRAM:
        scram_user(admin, user, "admin", mechanism)
    password = "admin-secret"
    login = 'unsecuredLoginStringClaim_sub="admin"' if mechanism == "OAUTHBEARER" else ""
    client = user("admin", password, mechanism, protocol, login)
    client.produce(made_topic, "a", "b", "c")
    assert sorted(client.consume(made_topic, 3)) == ["a", "b", "c"]


def test_console_clients_with_a_certificate(secured: Secured, admin: User, user: MakeUser, made_topic: str) -> None:
    """SSL: the principal is the certificate's subject."""
    own = secured.authority.sign("carol").write(secured.folder / "carol.pem")
    carol = user("carol", "", protocol="SSL", ssl_keystore_type="PEM", ssl_keystore_location=own)
    assert "TopicAuthorizationException" in carol.refused(*WRITE, made_topic, stdin="x\n")
    allowed = ("--allow-principal", "User:CN=carol,O=Barnabas", "--topic", made_topic)
    admin("kafka-acls", "--add", *allowed, "--operation", "Read", "--operation", "Write")
    admin("kafka-acls", "--add", "--allow-principal", "User:CN=carol,O=Barnabas", "--operation", "Read", "--group", "*")
    carol.produce(made_topic, "signed")
    assert carol.consume(made_topic, 1) == ["signed"]


def test_a_wrong_password_is_told(user: MakeUser) -> None:
    output = user("admin", "wrong").refused("kafka-topics", "--list")
    assert "Authentication failed: Invalid username or password" in output


def test_a_broker_of_another_authority_is_not_believed(user: MakeUser, secured: Secured) -> None:
    other = Authority("somebody else").write(secured.folder / "other.pem")
    output = user("admin", "admin-secret", ssl_truststore_location=other).refused("kafka-topics", "--list")
    assert "SSL handshake failed" in output


def test_a_console_consumer_reads_on_over_a_new_certificate(secured: Secured, admin: User, made_topic: str) -> None:
    """kafka-configs changes the certificate; new connections are shown it, and the old ones go on."""
    options = ["--bootstrap-server", admin.bootstrap, "--command-config", str(admin.path), "--topic", made_topic]
    command = kafka_tools.process("consumer.ConsoleConsumer", *options, "--from-beginning", "--max-messages", "4")
    reader = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert reader.stdout is not None
        admin.produce(made_topic, "0")
        assert reader.stdout.readline() == "0\n"
        for number in range(1, 4):
            own = secured.authority.sign("broker")
            path = own.write(secured.folder / f"broker-{number}.pem")
            key_store = f"listener.name.sasl_ssl.ssl.keystore.location={path}"
            brokers = ("--entity-type", "brokers", "--entity-name", 1)
            admin("kafka-configs", "--alter", *brokers, "--add-config", key_store)
            wait_for(lambda own=own: shown(secured) == own.der, "the new certificate is shown")
            admin.produce(made_topic, str(number))
            assert reader.stdout.readline() == f"{number}\n"
        assert reader.wait(WAIT_MS / 1000) == 0
    finally:
        reader.kill()
        reader.wait()
        reader.stdout.close()


def shown(secured: Secured) -> bytes | None:
    """The certificate that a new connection of SASL_SSL is shown."""
    address = ("127.0.0.1", secured.ports["SASL_SSL"])
    context = ssl.create_default_context(cafile=secured.ca)
    with socket.create_connection(address) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as tls:
        return tls.getpeercert(binary_form=True)


# ---------------------------------------------------------------- kafka-acls


def test_acls(admin: User, somebody: User, made_topic: str) -> None:
    """Refused, allowed, denied, and refused again."""
    who = f"User:{somebody.name}"
    for operation in ("--producer", "--consumer"):
        group = ("--group", "*") if operation == "--consumer" else ()
        output = admin("kafka-acls", "--add", "--allow-principal", who, operation, "--topic", "nothing", *group)
        assert "Adding ACLs for resource" in output
    assert "TopicAuthorizationException" in somebody.refused(*WRITE, made_topic, stdin="refused\n")
    topic = ("--topic", made_topic)
    admin("kafka-acls", "--add", "--allow-principal", who, "--producer", *topic)
    admin("kafka-acls", "--add", "--allow-principal", who, "--operation", "Read", *topic)
    somebody.produce(made_topic, "allowed")
    assert somebody.consume(made_topic, 1) == ["allowed"]
    admin("kafka-acls", "--add", "--deny-principal", who, "--operation", "Write", *topic)
    listed = admin("kafka-acls", "--list", *topic)
    for operation, permission in (("READ", "ALLOW"), ("WRITE", "ALLOW"), ("WRITE", "DENY")):
        assert f"(principal={who}, host=*, operation={operation}, permissionType={permission})" in listed
    assert "TopicAuthorizationException" in somebody.refused(*WRITE, made_topic, stdin="refused\n")
    admin("kafka-acls", "--remove", "--force", *topic)
    assert who not in admin("kafka-acls", "--list", *topic)
    assert made_topic not in somebody("kafka-topics", "--list").split()


def test_acls_are_the_super_users(somebody: User) -> None:
    for action in (("--list",), ("--add", "--allow-principal", "User:x", "--operation", "Read", "--topic", "x")):
        assert "ClusterAuthorizationException" in somebody.refused("kafka-acls", *action)


# ---------------------------------------------------------------- kafka-configs: users and quotas


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram_users(admin: User, user: MakeUser, topic_name: Callable[..., str], mechanism: str) -> None:
    name = topic_name("scram")
    assert "Authentication failed" in user(name, f"{name}-secret", mechanism).refused("kafka-topics", "--list")
    client = scram_user(admin, user, name, mechanism)
    users = ("--entity-type", "users", "--entity-name", name)
    described = admin("kafka-configs", "--describe", *users)
    assert f"SCRAM credential configs for user-principal '{name}' are {mechanism}=iterations=4096" in described
    client("kafka-topics", "--list")
    admin("kafka-configs", "--alter", *users, "--add-config", f"{mechanism}=[iterations=8192,password=changed]")
    assert "Authentication failed" in client.refused("kafka-topics", "--list")
    changed = user(name, "changed", mechanism)
    changed("kafka-topics", "--list")
    output = changed.refused("kafka-configs", "--alter", *users, "--add-config", f"{mechanism}=[password=x]")
    assert "ClusterAuthorizationException" in output
    admin("kafka-configs", "--alter", *users, "--delete-config", mechanism)
    assert "Authentication failed" in changed.refused("kafka-topics", "--list")


OF_USER = ("--entity-type", "users", "--entity-name", "NAME")
OF_CLIENT = ("--entity-type", "clients", "--entity-name", "NAME")
ENTITIES = {
    "user": OF_USER,
    "client": OF_CLIENT,
    "user-and-client": (*OF_USER, *OF_CLIENT),
    "user-and-any-client": (*OF_USER, "--entity-type", "clients", "--entity-default"),
    "any-user": ("--entity-type", "users", "--entity-default"),
    "any-client": ("--entity-type", "clients", "--entity-default"),
}


@pytest.mark.parametrize("entity", ENTITIES)
def test_quotas(admin: User, somebody: User, topic_name: Callable[..., str], entity: str) -> None:
    name = topic_name("limited")
    words = [name if word == "NAME" else word for word in ENTITIES[entity]]
    rates = {"producer_byte_rate": 10_000, "consumer_byte_rate": 20_000, "request_percentage": 150}
    change = ("kafka-configs", "--alter", *words, "--add-config", ",".join(f"{key}={rates[key]}" for key in rates))
    assert "ClusterAuthorizationException" in somebody.refused(*change)
    admin(*change)
    described = admin("kafka-configs", "--describe", *words)
    assert all(f"{key}={rates[key]}.0" in described for key in rates), described
    admin("kafka-configs", "--alter", *words, "--delete-config", ",".join(rates))
    assert "byte_rate" not in admin("kafka-configs", "--describe", *words)


@pytest.mark.parametrize("words", [("--entity-name", "192.0.2.1"), ("--entity-default",)], ids=["address", "any"])
def test_quotas_of_addresses(admin: User, somebody: User, words: tuple[str, ...]) -> None:
    entity = ("--entity-type", "ips", *words)
    added = ("--add-config", "connection_creation_rate=1000")
    assert "ClusterAuthorizationException" in somebody.refused("kafka-configs", "--alter", *entity, *added)
    admin("kafka-configs", "--alter", *entity, *added)
    assert "connection_creation_rate=1000.0" in admin("kafka-configs", "--describe", *entity)
    admin("kafka-configs", "--alter", *entity, "--delete-config", "connection_creation_rate")
    assert "connection_creation_rate" not in admin("kafka-configs", "--describe", *entity)


def test_configs_of_topics_and_brokers(admin: User, somebody: User, made_topic: str) -> None:
    topic = ("--entity-type", "topics", "--entity-name", made_topic)
    added = ("--add-config", "retention.ms=123456789")
    assert "TopicAuthorizationException" in somebody.refused("kafka-configs", "--alter", *topic, *added)
    admin("kafka-configs", "--alter", *topic, *added)
    assert "retention.ms=123456789" in admin("kafka-configs", "--describe", *topic)
    everything = admin("kafka-configs", "--describe", "--entity-type", "brokers", "--entity-name", "1", "--all")
    assert "ssl.keystore.location=" in everything
    assert "-secret" not in everything
    assert "a-key-of-the-tests" not in everything


# ---------------------------------------------------------------- kafka-delegation-tokens


def create_token(owner: User, *arguments: str) -> tuple[str, str]:
    """A token's id and its key."""
    output = owner("kafka-delegation-tokens", "--create", "--max-life-time-period", -1, *arguments)
    match = re.search(rf"^(\S{{22}}) +(\S+) +User:{owner.name}", output, re.MULTILINE)
    assert match is not None, output
    return match[1], match[2]


def test_delegation_tokens(admin: User, user: MakeUser, made_topic: str) -> None:
    token_id, key = create_token(admin, "--renewer-principal", "User:bob")
    described = ("kafka-delegation-tokens", "--describe", "--owner-principal", "User:admin")
    wait_for(lambda: token_id in admin(*described), "the token is described")  # Kafka's broker learns of it later
    for mechanism in SCRAM:
        login = f'username="{token_id}" password="{key}" tokenauth="true"'
        bearer = user("bearer", "", mechanism, login=login)
        bearer.produce(made_topic, mechanism)
    assert sorted(bearer.consume(made_topic, 2)) == sorted(SCRAM)
    output = bearer.refused("kafka-delegation-tokens", "--create", "--max-life-time-period", -1)
    assert "Delegation Token requests are not allowed" in output
    renewed = admin("kafka-delegation-tokens", "--renew", "--hmac", key, "--renew-time-period", 60_000)
    assert "Completed renew operation" in renewed
    expired = admin("kafka-delegation-tokens", "--expire", "--hmac", key, "--expiry-time-period", -1)
    assert "Completed expire operation" in expired
    wait_for(lambda: token_id not in admin(*described), "the token is gone")
    assert "Authentication failed" in bearer.refused("kafka-topics", "--list")


def test_a_token_of_another_user_is_not_seen(admin: User, somebody: User) -> None:
    token_id, key = create_token(somebody)
    described = ("kafka-delegation-tokens", "--describe", "--owner-principal", f"User:{somebody.name}")
    wait_for(lambda: token_id in somebody(*described), "the token is described")
    expire = ("kafka-delegation-tokens", "--expiry-time-period", -1, "--expire", "--hmac")
    somebody(*expire, key)
    hidden, other_key = create_token(admin)
    assert hidden not in somebody("kafka-delegation-tokens", "--describe", "--owner-principal", "User:admin")
    assert "DelegationTokenOwnerMismatchException" in somebody.refused(*expire, other_key)
    admin(*expire, other_key)


# ---------------------------------------------------------------- topics and groups


def test_topics(admin: User, somebody: User, topic: str) -> None:
    who = f"User:{somebody.name}"
    create = ("kafka-topics", "--create", "--topic", topic, "--partitions", 1, "--replication-factor", 1)
    assert "Authorization failed." in somebody.refused(*create)
    allowed = ("--operation", "Create", "--operation", "Describe", "--operation", "Alter", "--operation", "Delete")
    admin("kafka-acls", "--add", "--allow-principal", who, *allowed, "--topic", topic)
    assert f"Created topic {topic}." in somebody(*create)
    assert somebody("kafka-topics", "--list").split() == [topic]
    somebody("kafka-topics", "--alter", "--topic", topic, "--partitions", 3)
    assert f"Topic: {topic}\tPartition: 2" in admin("kafka-topics", "--describe", "--topic", topic)
    somebody("kafka-topics", "--delete", "--topic", topic)
    assert topic not in admin("kafka-topics", "--list").split()


def test_consumer_groups(admin: User, somebody: User, made_topic: str, topic_name: Callable[..., str]) -> None:
    who, group = f"User:{somebody.name}", topic_name("group")
    admin.produce(made_topic, *map(str, range(10)))
    named = ("--group", group)
    assert "GroupAuthorizationException" in somebody("kafka-consumer-groups", "--describe", *named)
    admin("kafka-acls", "--add", "--allow-principal", who, "--consumer", "--topic", made_topic, "--group", group)
    assert sorted(somebody.consume(made_topic, 10, "--group", group)) == sorted(map(str, range(10)))
    assert somebody("kafka-consumer-groups", "--list").split() == [group]
    rows = [line.split() for line in somebody("kafka-consumer-groups", "--describe", *named).splitlines()]
    assert sum(int(row[3]) for row in rows if row[:2] == [group, made_topic]) == 10
    reset = ("kafka-consumer-groups", "--reset-offsets", *named, "--topic", made_topic, "--to-earliest", "--execute")
    assert made_topic in somebody(*reset)
    assert sorted(somebody.consume(made_topic, 10, "--group", group)) == sorted(map(str, range(10)))
    assert "GroupAuthorizationException" in somebody("kafka-consumer-groups", "--delete", *named)
    assert "successful" in admin("kafka-consumer-groups", "--delete", *named)
    assert group not in admin("kafka-consumer-groups", "--list").split()


OTHERS = {
    "kafka-broker-api-versions": ((), "Produce(0)"),
    "kafka-get-offsets": (("--topic", "TOPIC"), ":0:2"),
    "kafka-log-dirs": (("--describe",), '"partition"'),
    "kafka-features": (("describe",), "metadata.version"),
    "kafka-transactions": (("list",), "TransactionalId"),
    "kafka-groups": (("--list",), "GROUP"),
    "kafka-client-metrics": (("--list",), ""),
    "kafka-cluster": (("cluster-id",), "Cluster ID"),
}


@pytest.mark.parametrize("tool", OTHERS)
def test_other_tools(admin: User, made_topic: str, tool: str) -> None:
    arguments, text = OTHERS[tool]
    admin.produce(made_topic, "0", "1")
    words = [made_topic if word == "TOPIC" else word for word in arguments]
    if tool in ("kafka-cluster", "kafka-transactions", "kafka-features"):  # an action comes first
        output = jvm.run([tool, *action_first(tool, words, admin)], "")
        assert output.code == 0, output
        assert text in "\n".join(output.out)
    else:
        assert text in admin(tool, *words)


def action_first(tool: str, words: list[str], who: User) -> list[str]:
    """The arguments of a tool that wants its action in the first or the last place."""
    config = "--config" if tool == "kafka-cluster" else "--command-config"
    common = ["--bootstrap-server", who.bootstrap, config, str(who.path)]
    return [*words, *common] if tool == "kafka-cluster" else [*common, *words]
