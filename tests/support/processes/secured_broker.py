"""A broker for the suites with one secured listener for clients, and another one for the tests themselves.

The authorizer is on. The clients' user `admin` is a super user, and so is the tests' own one. The anonymous user has
the plaintext listener and is denied everything, so that a client whose principal is lost fails its suite; with TLS
alone clients have no other principal, and only there it is allowed everything. The configuration is in Kafka's keys
only, so that the broker may be of either kind.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from pathlib import Path

import jwt

from tests.support.jvm.command import KAFKA_NODE
from tests.support.processes.kafka import KafkaServer
from tests.support.processes.ports import free_port
from tests.support.processes.secured import MODULES, common_keys, listener_keys, login_keys, own_listener
from tests.support.processes.security import MUTUAL, TOKEN_LASTS_S, Combination, Security
from tests.support.processes.server import BarnabasServer, Server
from tests.support.security.certificates import Authority, Signed
from tests.support.security.token_issuer import AUDIENCE, ISSUER, jwk, private_key, write_jwks

USER, PASSWORD = "admin", "admin-secret"
"""As the PLAIN users of `login_keys` have it."""
ITERATIONS = 4096
ASK_TIMEOUT_S = 10.0


class SecuredBroker:
    """The broker with its files. `server.clients` has what clients need."""

    def __init__(self, kind: str, data_dir: Path, keys: Mapping[str, str], combination: Combination) -> None:
        """`kind` is `barnabas` or `kafka`; `keys` are a test's configuration keys."""
        self.folder = data_dir.with_name(f"{data_dir.name}-secure")
        self.folder.mkdir(exist_ok=True)
        self.ways = ("config",) if kind == "kafka" else ("config", "file")  # Kafka does not watch its files
        self._listener = combination.protocol.lower()
        self._authority = Authority()
        self._rotations = 0
        self._key_store = Path(self._sign().write(self.folder / "broker.pem"))
        port = free_port()
        self.plaintext = f"127.0.0.1:{free_port()}"
        """The address of the listener without security."""
        own_address = f"127.0.0.1:{free_port()}"
        security = Security(
            combination=combination,
            ca=self._authority.write(self.folder / "ca.pem"),
            certificate=self._authority.sign(USER).write(self.folder / "client.pem"),
            user=USER,
            password=PASSWORD,
            token_file=str(self._write_token()),
        )
        addresses = {combination.protocol: f"127.0.0.1:{port}", "PLAINTEXT": self.plaintext}
        own = self._config(security) | listener_keys(kind, addresses, own_address)
        self.server = self._server(kind, data_dir, {**own, **keys}, port)
        self.server.security, self.server.own_listener = security, own_listener(own_address)

    @property
    def is_running(self) -> bool:
        """Whether the process runs."""
        return self.server.is_running

    def start(self) -> None:
        """Start it and make the users of SCRAM."""
        self.server.start()
        mechanism = self.server.security.combination.mechanism if self.server.security else ""
        if mechanism.startswith("SCRAM"):
            from barnabas.client.admin.users import set_credential
            from barnabas.client.security.scram import credential

            with self.server.administration.barnabas(ASK_TIMEOUT_S) as cluster:
                set_credential(cluster, USER, credential(mechanism, PASSWORD, ITERATIONS))

    def replace(self, way: str) -> bytes:
        """Put a new certificate in place, by a changed file or by the dynamic config; it is returned in DER."""
        self._rotations += 1
        signed = self._sign()
        new = Path(signed.write(self.folder / f"broker-{self._rotations}.pem"))
        if way == "file":
            new.replace(self._key_store)
        else:
            self._alter_key_store(new)
            self._key_store = new
        return signed.der

    def shown(self) -> bytes:
        """The certificate in DER that a new connection is shown."""
        with socket.create_connection((self.server.host, self.server.port), ASK_TIMEOUT_S) as plain:
            context = self.server.clients.ssl_context()
            with context.wrap_socket(plain, server_hostname=self.server.host) as secured:
                certificate = secured.getpeercert(binary_form=True)
        assert certificate is not None
        return certificate

    def _alter_key_store(self, path: Path) -> None:
        from barnabas.client.admin.configs import SET, ConfigChange, alter_config

        key = f"listener.name.{self._listener}.ssl.keystore.location"
        with self.server.administration.barnabas(ASK_TIMEOUT_S) as cluster:
            alter_config(cluster, "broker", "1", [ConfigChange(key, SET, str(path))])

    def _sign(self) -> Signed:
        return self._authority.sign("broker")

    def _write_token(self) -> Path:
        now = int(time.time())
        claims = {"sub": USER, "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 2 * TOKEN_LASTS_S}
        path = self.folder / "token.jwt"
        path.write_text(jwt.encode(claims, private_key("RSA", 0), "RS256", headers={"kid": "one"}))
        return path

    def _config(self, security: Security) -> dict[str, str]:
        combination, prefix = security.combination, f"listener.name.{self._listener}."
        config = common_keys(self._key_store, security.ca)
        if str(combination) == "SSL":
            config["super.users"] += ";User:ANONYMOUS"
        if combination.mechanism:
            config |= login_keys(self._listener) | {"sasl.enabled.mechanisms": combination.mechanism}
        if combination.way == "OAUTHBEARER":
            config |= {
                f"{prefix}oauthbearer.sasl.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;",
                f"{prefix}oauthbearer.sasl.server.callback.handler.class": f"{MODULES}.oauthbearer."
                "OAuthBearerValidatorCallbackHandler",
                f"{prefix}oauthbearer.sasl.oauthbearer.jwks.endpoint.url": self._jwks(),
                "sasl.oauthbearer.expected.issuer": ISSUER,
                "sasl.oauthbearer.expected.audience": AUDIENCE,
            }
        if combination.way == MUTUAL:
            config |= {"ssl.client.auth": "required", "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/"}
        return config

    def _jwks(self) -> str:
        return write_jwks(self.folder / "jwks.json", jwk("RSA", "one"))

    def _server(self, kind: str, data_dir: Path, config: dict[str, str], port: int) -> Server:
        if kind == "kafka":
            allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self._jwks()}"
            return KafkaServer(data_dir, config=config, port=port, jvm_options=[*KAFKA_NODE, allowed])
        return BarnabasServer(data_dir, config=config, port=port, listener="")
