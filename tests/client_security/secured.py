"""A broker with a listener of each security protocol, an authorizer and delegation tokens.

Its configuration is in Kafka's keys only, so that it may be of either kind. The anonymous user of the plaintext
listener is a super user, who makes the others.
"""

from __future__ import annotations

from pathlib import Path

from bench.ports import free_port
from bench.real_kafka import KafkaServer
from bench.servers import BarnabasServer, Server
from tests.client_security.certificates import Authority

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MODULES = "org.apache.kafka.common.security"
LOGINS = {
    "plain": f'{MODULES}.plain.PlainLoginModule required user_alice="alice-secret" user_admin="admin-secret";',
    "scram-sha-256": f"{MODULES}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{MODULES}.scram.ScramLoginModule required;",
    "oauthbearer": f'{MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="admin" '
    'unsecuredValidatorAllowableClockSkewMs="3000";',
}
VALIDATOR = f"{MODULES}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
SESSION_MS = 3000
"""The lifetime of a log-in on the SASL_PLAINTEXT listener."""
SMALL = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


class Secured:
    """The broker, its certificates, and a client's properties for each listener."""

    def __init__(self, folder: Path, kind: str) -> None:
        """`kind` is `barnabas` or `kafka`."""
        self.kind = kind
        self.folder = folder
        self.authority = Authority()
        self.ports = {protocol: free_port() for protocol in PROTOCOLS}
        self.ca = str(self.authority.pem_file(folder / "ca.pem"))
        self.server: Server
        if kind == "kafka":
            self.server = KafkaServer(folder / "data", config=self._config(), port=self.ports["PLAINTEXT"], heap=SMALL)
        else:
            self.server = BarnabasServer(
                folder / "data", config=self._config(), port=self.ports["PLAINTEXT"], listener=""
            )

    def address(self, protocol: str, host: str = "127.0.0.1") -> str:
        """`host:port` of a listener."""
        return f"{host}:{self.ports[protocol]}"

    def properties(self, protocol: str, **more: str) -> dict[str, str]:
        """A client's properties for a listener; `sasl_mechanism="PLAIN"` is `sasl.mechanism`."""
        found = {"security.protocol": protocol} | {key.replace("_", "."): value for key, value in more.items()}
        return found | ({"ssl.truststore.location": self.ca} if protocol.endswith("SSL") else {})

    def _config(self) -> dict[str, str]:
        own = self.authority.sign("broker", "127.0.0.1").pem_file(self.folder / "broker.pem")
        controller = f"127.0.0.1:{free_port()}"
        listeners = [f"{protocol}://{self.address(protocol)}" for protocol in PROTOCOLS]
        config = {
            "advertised.listeners": ",".join(listeners),
            **common_keys(own, self.ca),
            "delegation.token.secret.key": "a-key-of-the-tests",
            "listener.name.sasl_plaintext.connections.max.reauth.ms": str(SESSION_MS),
        }
        for listener in ("sasl_plaintext", "sasl_ssl"):
            config |= login_keys(listener)
        if self.kind == "kafka":
            config["controller.quorum.voters"] = f"1@{controller}"
            listeners.append(f"CONTROLLER://{controller}")
        names = ",".join(f"{name}:{name}" for name in PROTOCOLS)
        config["listener.security.protocol.map"] = f"{names},CONTROLLER:PLAINTEXT"
        return config | {"listeners": ",".join(listeners)}


def common_keys(key_store: Path, ca: str) -> dict[str, str]:
    """Keys of the authorizer, of TLS and of SASL for all listeners."""
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",
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
    found = {f"{prefix}{mechanism}.sasl.jaas.config": login for mechanism, login in LOGINS.items()}
    return found | {f"{prefix}oauthbearer.sasl.server.callback.handler.class": VALIDATOR}
