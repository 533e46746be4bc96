"""A broker with a listener of each security protocol, an authorizer and delegation tokens.

Its configuration is in Kafka's keys only, so that it may be of either kind. The tests have a listener and a super user
of their own, which creates the other users. The anonymous user is denied everything, so that a client whose principal
is lost is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.support.jvm.command import KAFKA_NODE
from tests.support.processes.kafka import KafkaServer
from tests.support.processes.ports import free_port
from tests.support.processes.security import ClientSettings, Combination, Security
from tests.support.processes.server import BarnabasServer, Server
from tests.support.security.certificates import Authority

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
HARNESS = "HARNESS"
"""The listener of the tests themselves. Its user is the node among nodes too."""
HARNESS_USER, HARNESS_PASSWORD = "harness", "harness-secret"
MODULES = "org.apache.kafka.common.security"
LOGINS = {
    "plain": f'{MODULES}.plain.PlainLoginModule required user_alice="alice-secret" user_admin="admin-secret";',
    "scram-sha-256": f"{MODULES}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{MODULES}.scram.ScramLoginModule required;",
    "oauthbearer": f'{MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="admin" '
    'unsecuredValidatorAllowableClockSkewMs="3000";',
}
HARNESS_LOGIN = (
    f'{MODULES}.plain.PlainLoginModule required username="{HARNESS_USER}" password="{HARNESS_PASSWORD}" '
    f'user_{HARNESS_USER}="{HARNESS_PASSWORD}";'
)
VALIDATOR = f"{MODULES}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
SESSION_MS = 3000
"""The lifetime of a log-in on the SASL_PLAINTEXT listener."""


class Secured:
    """The broker, its certificates, and a client's properties for each listener."""

    def __init__(self, folder: Path, kind: str) -> None:
        """`kind` is `barnabas` or `kafka`."""
        self.kind = kind
        self.folder = folder
        self.authority = Authority()
        self.ports = {protocol: free_port() for protocol in PROTOCOLS}
        self.harness = f"127.0.0.1:{free_port()}"
        """The address for the tests themselves."""
        self.ca = self.authority.write(folder / "ca.pem")
        self.server: Server
        if kind == "kafka":
            self.server = KafkaServer(
                folder / "data", config=self._config(), port=self.ports["PLAINTEXT"], jvm_options=KAFKA_NODE
            )
        else:
            self.server = BarnabasServer(
                folder / "data", config=self._config(), port=self.ports["PLAINTEXT"], listener=""
            )
        self.server.own_listener = own_listener(self.harness)
        self.command_config = str(self.server.own_listener.write(folder / "harness.properties"))
        """The properties of the tests themselves, for `harness`."""

    def address(self, protocol: str, host: str = "127.0.0.1") -> str:
        """`host:port` of a listener."""
        return f"{host}:{self.ports[protocol]}"

    def properties(self, protocol: str, **more: str) -> dict[str, str]:
        """A client's properties for a listener; `sasl_mechanism="PLAIN"` is `sasl.mechanism`."""
        properties_of_client = {"security.protocol": protocol} | {
            key.replace("_", "."): value for key, value in more.items()
        }
        return properties_of_client | ({"ssl.truststore.location": self.ca} if protocol.endswith("SSL") else {})

    def _config(self) -> dict[str, str]:
        own = Path(self.authority.sign("broker", ("127.0.0.1",)).write(self.folder / "broker.pem"))
        config = {
            **common_keys(own, self.ca),
            **listener_keys(self.kind, {protocol: self.address(protocol) for protocol in PROTOCOLS}, self.harness),
            "delegation.token.secret.key": "a-key-of-the-tests",
            "listener.name.sasl_plaintext.connections.max.reauth.ms": str(SESSION_MS),
        }
        for listener in ("sasl_plaintext", "sasl_ssl"):
            config |= login_keys(listener)
        return config


def own_listener(address: str) -> ClientSettings:
    """The settings of the tests' own client."""
    login = Combination("SASL_PLAINTEXT", "PLAIN")
    return ClientSettings(address, Security(login, "", "", HARNESS_USER, HARNESS_PASSWORD, ""))


def listener_keys(kind: str, addresses: Mapping[str, str], harness: str) -> dict[str, str]:
    """Keys of the clients' listeners, by security protocol, and of the tests' own one, which nodes use as well."""
    listeners = {**addresses, HARNESS: harness}
    config = {
        "advertised.listeners": _joined(listeners),
        "inter.broker.listener.name": HARNESS,
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
    }
    if kind == "kafka":
        listeners["CONTROLLER"] = f"127.0.0.1:{free_port()}"
        config["controller.quorum.voters"] = f"1@{listeners['CONTROLLER']}"
        config["sasl.mechanism.controller.protocol"] = "PLAIN"
    for name in sorted(listeners.keys() - addresses.keys()):
        prefix = f"listener.name.{name.lower()}."
        config[f"{prefix}sasl.enabled.mechanisms"] = "PLAIN"
        config[f"{prefix}plain.sasl.jaas.config"] = HARNESS_LOGIN
    protocols = {name: name if name in addresses else "SASL_PLAINTEXT" for name in listeners}
    config["listener.security.protocol.map"] = ",".join(f"{name}:{protocol}" for name, protocol in protocols.items())
    return config | {"listeners": _joined(listeners)}


def _joined(listeners: Mapping[str, str]) -> str:
    return ",".join(f"{name}://{address}" for name, address in listeners.items())


def common_keys(key_store: Path, ca: str) -> dict[str, str]:
    """Keys of the authorizer, of TLS and of SASL for all listeners."""
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{HARNESS_USER};User:admin",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(key_store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": ca,
        "ssl.client.auth": "requested",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    }


def login_keys(listener: str) -> dict[str, str]:
    """Keys of each mechanism for a listener; the tokens of OAUTHBEARER are unsecured."""
    prefix = f"listener.name.{listener}."
    keys = {f"{prefix}{mechanism}.sasl.jaas.config": login for mechanism, login in LOGINS.items()}
    return keys | {f"{prefix}oauthbearer.sasl.server.callback.handler.class": VALIDATOR}
