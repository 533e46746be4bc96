"""Secrets of every kind, each with a mark of its own: none is in a log, an answer, a screen or the list of processes.

They come by configuration file, environment, command line, dynamic config and SASL, right and wrong ones. A secret
typed on a command line is in the list of processes, as the guide says, and nowhere else.
"""

from __future__ import annotations

import base64
import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.processes.commands import COMMAND, Ran, clean_environment, run_command
from tests.support.security.certificates import Authority

MODULES = "org.apache.kafka.common.security"
PLAIN = f"{MODULES}.plain.PlainLoginModule"
WAIT_S = 30


def mark(name: str) -> str:
    """A secret that is found wherever it is."""
    return f"MARK-{name}-x7q9"


class SecretHolder:
    """A broker at DEBUG with a secret of each kind, and everything that was shown."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shown: dict[str, str] = {}
        self.secrets: set[str] = set()
        self.typed = {mark("typed")}
        authority = Authority()
        signed = authority.sign("server")
        self.key_pem = signed.key_pem(mark("key"))
        self._keep(self.key_pem.splitlines()[1])
        (folder / "own.pem").write_text(self.key_pem + signed.chain_pem)
        authority.write(folder / "ca.pem")
        for name in ("first", "second"):
            (folder / f"{name}.p12").write_bytes(signed.pkcs12(mark(name)))
        private = ec.generate_private_key(ec.SECP256R1())
        public = jwt.get_algorithm_by_name("ES256").to_jwk(private.public_key(), as_dict=True)
        (folder / "jwks.json").write_text(json.dumps({"keys": [{**public, "kid": "k"}]}))
        claims = {"sub": "bearer", "iss": "i", "aud": "a", "iat": int(time.time()), "exp": int(time.time()) + 3600}
        self.token = jwt.encode(claims, private, "ES256", headers={"kid": "k"})
        self.forged = jwt.encode(claims, ec.generate_private_key(ec.SECP256R1()), "ES256", headers={"kid": "k"})
        (folder / "token").write_text(self.token)
        (folder / "forged").write_text(self.forged)
        for token in (self.token, self.forged):
            self._keep(token.split(".")[2])
        (folder / "config").write_text(self._config())
        self.log = folder / "log"
        self.ready = folder / "ready"
        command = [*COMMAND, "serve", "--config", str(folder / "config"), "--data-dir", str(folder / "data")]
        command += ["--log-level", "debug", "--ready-file", str(self.ready)]
        typed = f'{PLAIN} required user_typed="{mark("typed")}";'
        command += ["--set", f"listener.name.typed.plain.sasl.jaas.config={typed}"]
        environment = {"KAFKA_LISTENER_NAME_PKCS_SSL_KEYSTORE_PASSWORD": mark("first")}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env=clean_environment() | environment, process_group=0
            )
        while not self.ready.exists():
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.01)
        ports = re.findall(r"([A-Z]+)://127\.0\.0\.1:(\d+)", self.log.read_text().split(" started on ")[1])
        self.addresses = {name: f"127.0.0.1:{port}" for name, port in ports}

    def _keep(self, secret: str) -> str:
        self.secrets.add(secret)
        return secret

    def _config(self) -> str:
        names = ("key", "first", "second", "admin", "node", "tokens", "own-wrong", "typed")
        self.secrets |= {mark(name) for name in names}
        listeners = {"ADMIN": "SASL_SSL", "PKCS": "SSL", "TYPED": "SASL_SSL", "TOKENS": "SASL_SSL"}
        users = f'username="node" password="{mark("node")}" user_node="{mark("node")}" user_admin="{mark("admin")}"'
        keys = {
            "listeners": ",".join(f"{name}://127.0.0.1:0" for name in listeners),
            "listener.security.protocol.map": ",".join(map(":".join, listeners.items())),
            "inter.broker.listener.name": "ADMIN",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.folder / "own.pem"),
            "ssl.key.password": mark("key"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.folder / "ca.pem"),
            "listener.name.pkcs.ssl.keystore.type": "PKCS12",
            "listener.name.pkcs.ssl.keystore.location": str(self.folder / "first.p12"),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.admin.plain.sasl.jaas.config": f"{PLAIN} required {users};",
            "listener.name.admin.scram-sha-512.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
            "listener.name.typed.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.tokens.sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.tokens.oauthbearer.sasl.jaas.config": (
                f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;"
            ),
            "sasl.oauthbearer.jwks.endpoint.url": (self.folder / "jwks.json").as_uri(),
            "sasl.oauthbearer.expected.issuer": "i",
            "sasl.oauthbearer.expected.audience": "a",
            "delegation.token.secret.key": mark("tokens"),
            "authorizer.class.name": "barnabas",
            "super.users": "User:admin",
            "barnabas.metrics.listener": "127.0.0.1:0",
        }
        return "".join(f"{key}={value}\n" for key, value in keys.items())

    def client(self, name: str, listener: str, mechanism: str, jaas: str, **more: str) -> str:
        """A client.properties."""
        lines = {
            "bootstrap.servers": self.addresses[listener],
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": jaas,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.folder / "ca.pem"),
            **{key.replace("_", "."): value for key, value in more.items()},
        }
        path = self.folder / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        return str(path)

    def run(self, *arguments: str, client: str = "", secrets: bool = False) -> Ran:
        """Run a command and keep what it shows, unless that is to be a secret."""
        options = ("--command-config", client) if client else ()
        ran = run_command(*arguments, *options)
        if not secrets:
            self.shown[" ".join(arguments)] = ran.stdout + ran.stderr
        return ran

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(WAIT_S) == 0, self.log.read_text()
        self.shown["log"] = self.log.read_text()

    def found(self) -> list[tuple[str, str]]:
        """Each secret that was shown, with where; a token's end and a key's line count as well."""
        encoded = {base64.b64encode(secret.encode()).decode().rstrip("=")[:20]: secret for secret in self.secrets}
        places = [(secret, where) for where, text in self.shown.items() for secret in self.secrets if secret in text]
        return places + [
            (secret, where) for where, text in self.shown.items() for e, secret in encoded.items() if e in text
        ]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SecretHolder]:
    holder = SecretHolder(tmp_path)
    yield holder
    if holder.process.poll() is None:
        holder.process.kill()
        holder.process.wait()


def test_no_secret_is_in_what_a_broker_and_its_commands_show(world: SecretHolder) -> None:
    admin = world.client("admin", "ADMIN", "PLAIN", login("PLAIN", "admin", mark("admin")))
    set_up_users(world, admin)
    change_certificates(world, admin)
    log_in(world)
    look_around(world, admin)
    look_at_processes(world)
    world.stop()
    look_at_files(world)
    start_with_mistakes(world)
    assert "DEBUG" in world.shown["log"], "the log has not its lowest level"
    assert "Failed authentication" in world.shown["log"]
    assert world.found() == []


def login(mechanism: str, user: str, password: str, more: str = "") -> str:
    module = PLAIN if mechanism == "PLAIN" else f"{MODULES}.scram.ScramLoginModule"
    return f'{module} required username="{user}" password="{password}"{more};'


def set_up_users(world: SecretHolder, admin: str) -> None:
    for name in ("alice", "short"):
        (world.folder / f"{name}.secret").write_text(world._keep(mark(name)) + "\n")
        world.run("user", "set", name, "--password-file", str(world.folder / f"{name}.secret"), client=admin).ok()
    token = world.run("token", "create", "--owner", "alice", "-o", "json", client=admin, secrets=True).ok().json
    world._keep(token["hmac"])
    scram = login("SCRAM-SHA-512", token["token_id"], token["hmac"], " tokenauth=true")
    world.run("topic", "list", client=world.client("delegated", "ADMIN", "SCRAM-SHA-512", scram)).ok()


def change_certificates(world: SecretHolder, admin: str) -> None:
    """A dynamic config that is a password: a right one, and one that is refused."""
    connection = AdminClient(
        {
            "bootstrap.servers": world.addresses["ADMIN"],
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": mark("admin"),
            "ssl.ca.location": str(world.folder / "ca.pem"),
        }
    )
    for password, is_right in ((mark("own-wrong"), False), (mark("second"), True)):
        changes = {"ssl.keystore.location": str(world.folder / "second.p12"), "ssl.keystore.password": password}
        entries = [
            ConfigEntry(f"listener.name.pkcs.{key}", value, incremental_operation=AlterConfigOpType.SET)
            for key, value in changes.items()
        ]
        resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=entries)
        response = connection.incremental_alter_configs([resource])[resource]
        if is_right:
            response.result(WAIT_S)
            continue
        with pytest.raises(KafkaException) as refused:
            response.result(WAIT_S)
        world.shown["a refused certificate"] = str(refused.value)
    described = connection.describe_configs([ConfigResource(ConfigResource.Type.BROKER, "1")])
    for future in described.values():
        world.shown["DescribeConfigs"] = repr({name: str(value) for name, value in future.result(WAIT_S).items()})
    world.run("config", "set", "broker", "1", "listener.name.pkcs.ssl.keystore.type=nonsense", client=admin)


def log_in(world: SecretHolder) -> None:
    """Right and wrong passwords and tokens."""
    wrong = world._keep(mark("wrong-password"))
    for name, listener, mechanism, jaas, code in (
        ("alice", "ADMIN", "SCRAM-SHA-512", login("SCRAM-SHA-512", "alice", mark("alice")), 0),
        ("wrong", "ADMIN", "SCRAM-SHA-512", login("SCRAM-SHA-512", "alice", wrong), 1),
        ("plain", "ADMIN", "PLAIN", login("PLAIN", "admin", wrong), 1),
        ("typed", "TYPED", "PLAIN", login("PLAIN", "typed", mark("typed")), 0),
    ):
        ran = world.run("topic", "list", "--timeout", "10", client=world.client(name, listener, mechanism, jaas))
        assert (ran.code != 0) == bool(code), ran.stderr
        world.shown[f"topic list as {name}"] = ran.stdout + ran.stderr
    bearer = f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;"
    for name, code in (("token", 0), ("forged", 1)):
        url = (world.folder / name).as_uri()
        client = world.client(f"of-{name}", "TOKENS", "OAUTHBEARER", bearer, sasl_oauthbearer_token_endpoint_url=url)
        ran = world.run("topic", "list", "--timeout", "10", client=client)
        assert (ran.code != 0) == bool(code), ran.stderr
        world.shown[f"topic list with {name}"] = ran.stdout + ran.stderr


def look_around(world: SecretHolder, admin: str) -> None:
    """Every command that shows configs, users, tokens and the state of a broker."""
    for command in (
        "config get broker 1 --all -o json",
        "config get broker 1 --all",
        "user list -o json",
        "user describe alice -o json",
        "token list -o json",
        "acl list -o json",
        "quota list -o json",
        "doctor",
        "features list",
        "cat -L",
    ):
        assert world.run(*command.split(), client=admin).code in (0, 2), command
    address = world.addresses["ADMIN"]
    for command in (
        f"kafka-configs --bootstrap-server {address} --describe --all --broker 1",
        f"kafka-configs --bootstrap-server {address} --describe --user alice",
        f"kafka-delegation-tokens --bootstrap-server {address} --describe",
    ):
        world.run(*command.split(), client=admin, secrets="tokens" in command)
    metrics = re.search(r"metrics at http://127\.0\.0\.1:(\d+)", world.log.read_text())
    assert metrics is not None
    from urllib.request import urlopen

    with urlopen(f"http://127.0.0.1:{metrics[1]}/metrics", timeout=WAIT_S) as response:
        world.shown["/metrics"] = response.read().decode()
    assert 'barnabas_failed_authentications_total{listener="ADMIN"} 2\n' in world.shown["/metrics"]
    assert 'barnabas_failed_authentications_total{listener="TOKENS"} 1\n' in world.shown["/metrics"]
    assert 'barnabas_successful_authentications_total{listener="TYPED"} 1\n' in world.shown["/metrics"]


def look_at_processes(world: SecretHolder) -> None:
    lines = Path(f"/proc/{world.process.pid}/cmdline")
    if not lines.exists():
        return
    shown = lines.read_text() + Path(f"/proc/{world.process.pid}/comm").read_text()
    for typed in world.typed:
        assert typed in shown, "the mark of the command line is looked for in the wrong place"
        shown = shown.replace(typed, "")
    world.shown["the list of processes"] = shown


def look_at_files(world: SecretHolder) -> None:
    """What the tools show of the metadata on disk."""
    logs = [str(path) for path in (world.folder / "data" / "__cluster_metadata-0").glob("*.log")]
    dumped = world.run("dump-log", "--cluster-metadata-decoder", "--files", ",".join(logs)).ok().stdout
    assert '"name":"listener.name.pkcs.ssl.keystore.password","value":"[hidden]"' in dumped
    assert '"storedKey":"[hidden]"' in dumped
    world.run("storage", "check", str(world.folder / "data"))
    world.run("serve", "--check", "--config", str(world.folder / "config"), "--data-dir", str(world.folder / "data"))


def start_with_mistakes(world: SecretHolder) -> None:
    """Configurations with a mistake beside a secret, or in it: the sentence does not show it."""
    text = (world.folder / "config").read_text()
    secret = world._keep(mark("mistaken"))
    admin, key = f'user_admin="{mark("admin")}";', f"ssl.key.password={mark('key')}"
    kind = "listener.name.pkcs.ssl.keystore.type=PKCS12\n"
    for name, old, new, sentence in (
        ("no semicolon", admin, f'user_admin="{secret}"', "entry not terminated by semi-colon"),
        ("an open quote", admin, f'user_admin="{secret};', "has no end"),
        ("a wrong key password", key, f"ssl.key.password={secret}", "is ssl.key.password right?"),
        ("a password of PKCS12", kind, f"{kind}listener.name.pkcs.ssl.keystore.password={secret}\n", "Cannot read"),
        (
            "an inline key",
            "ssl.keystore.location=",
            f"ssl.keystore.key={secret}\nssl.keystore.location=",
            "but certificate chain is not specified",
        ),
        (
            "another class",
            "=barnabas\n",
            f"=x\nlistener.name.admin.ssl.key.passwort={secret}\n",
            "Barnabas runs no Java classes",
        ),
    ):
        assert old in text, name
        (world.folder / "mistaken").write_text(text.replace(old, new, 1))
        typed = f'listener.name.typed.plain.sasl.jaas.config={PLAIN} required user_typed="typed";'
        where = ("--config", str(world.folder / "mistaken"), "--data-dir", str(world.folder / "other"))
        ran = world.run("serve", *where, "--set", typed)
        assert ran.code == 2, (name, ran.stderr)
        assert sentence in ran.stderr
        assert "Traceback" not in ran.stderr
        world.shown[name] = ran.stdout + ran.stderr
