"""The table `[security]` of a job's file: TLS and SASL, with Kafka's own names of the keys.

In the file a name may be quoted or not, since TOML reads `ssl.key.password = "..."` as nested tables. A value may refer
to the environment or to a file (`references.py`). No text of an error has the value of a secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, model_validator

from barnabas.coord.security.jaas import parse_jaas
from barnabas.spark.errors import MistakeError
from barnabas.spark.settings.pem import check_key_store, check_trust_store
from barnabas.spark.settings.references import properties_of, resolved
from barnabas.spark.topics.broker import IDENTIFICATION, MODULES, Broker, Security
from barnabas.terminal.suggestion import suggestion
from barnabas.wire.configdef import ConfigError

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
REFUSED: Final = {
    "ssl.truststore.password": "stores are PEM here, and a trust store in PEM has no password",
    "ssl.keystore.password": "stores are PEM here, and the password of a key in PEM is ssl.key.password",
}
"""Keys of Kafka's clients that do not fit the stores of the pipeline, each with the reason."""
WITHOUT_EFFECT: Final = ("bootstrap.servers", "client.id")
"""Keys of a client.properties that are ignored: the job has its own."""
SECRETS: Final = frozenset({"sasl.jaas.config", "sasl.password", "ssl.keystore.key", "ssl.key.password"})
"""Keys whose values are never shown."""


def _key(name: str, description: str) -> Any:
    return Field(None, alias=name, description=description, repr=False)


class SecurityTable(BaseModel):
    """TLS and SASL. A value may have `${env:NAME}`, `${file:PATH:KEY}` or `${directory:PATH:NAME}` in it."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    file: str | None = Field(
        None, description="A file of properties with keys of this table, as Kafka's client.properties."
    )
    protocol: str | None = _key(
        "security.protocol", "`PLAINTEXT`, `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`. Default: `PLAINTEXT`."
    )
    mechanism: str | None = _key("sasl.mechanism", "`PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`.")
    username: str | None = _key("sasl.username", "The user, instead of `sasl.jaas.config`.")
    password: str | None = _key("sasl.password", "The user's password.")
    jaas_config: str | None = _key("sasl.jaas.config", "Kafka's line with the user and the password.")
    truststore: str | None = _key(
        "ssl.truststore.location", "A PEM file with the CAs to trust. Default: those of Java and of the machine."
    )
    truststore_type: str | None = _key("ssl.truststore.type", "`PEM`, the only type.")
    truststore_certificates: str | None = _key(
        "ssl.truststore.certificates", "The CAs to trust as PEM, instead of a file."
    )
    keystore: str | None = _key(
        "ssl.keystore.location", "A PEM file with the client's private key (PKCS #8) and its certificates."
    )
    keystore_type: str | None = _key("ssl.keystore.type", "`PEM`, the only type.")
    keystore_key: str | None = _key("ssl.keystore.key", "The private key as PEM, instead of a file.")
    keystore_chain: str | None = _key("ssl.keystore.certificate.chain", "The client's certificates as PEM.")
    key_password: str | None = _key("ssl.key.password", "The password of the private key.")
    identification: str | None = _key(
        IDENTIFICATION, "`https` compares the broker's name with its certificate; empty: no comparison."
    )

    @model_validator(mode="before")
    @classmethod
    def _flat(cls, table: Any) -> Any:
        if not isinstance(table, dict):
            return table
        flat = dict(_flattened(table))
        _refuse(flat)
        return flat

    def keys_set(self) -> dict[str, str]:
        """The keys that are set, by Kafka's names, without those of the file."""
        return {key: value for key, value in self.model_dump(by_alias=True).items() if value is not None}


def security_of(table: SecurityTable) -> Security:
    """The table with its file and all that it refers to. ValueError, a sentence without a secret, for a mistake."""
    own = table.keys_set()
    path = own.pop("file", None)
    return checked({**(_of_file(path) if path else {}), **own})


def secured_broker(bootstrap: str, table: SecurityTable | None, where: str = "[security]") -> Broker:
    """The broker at an address. MistakeError, one sentence that begins with `where`, for a mistake in the table."""
    try:
        return Broker(bootstrap, security_of(table) if table else Security())
    except ValueError as error:
        raise MistakeError(f"{where} {error}") from None


def checked(keys: Mapping[str, str]) -> Security:
    """The keys with the values that they refer to, if they fit each other. ValueError, a sentence, if not."""
    values = {}
    for key, text in keys.items():
        try:
            values[key] = resolved(text)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None
    _check_protocol(values)
    _check_login(values)
    _check_identification(values)
    check_trust_store(values)
    check_key_store(values)
    return Security(tuple(sorted(values.items())))


def _of_file(path: str) -> dict[str, str]:
    properties = {key: value for key, value in properties_of(path).items() if key not in WITHOUT_EFFECT}
    _refuse(properties)
    known = [field.alias for field in SecurityTable.model_fields.values() if field.alias]
    for key in properties:
        if key not in known:
            raise ValueError(f"the pipeline does not take {key} of {path}{suggestion(key, known)}; "
                             f"it takes {', '.join(known)}")  # fmt: skip
    return properties


def _flattened(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flattened(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _refuse(keys: Mapping[str, Any]) -> None:
    for key, reason in REFUSED.items():
        if key in keys:
            raise ValueError(f"{key}: {reason}")


def _check_protocol(values: dict[str, str]) -> None:
    protocol = values.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise ValueError(f"security.protocol is one of {', '.join(PROTOCOLS)}, not {protocol}")
    for prefix, part in (("sasl.", "SASL"), ("ssl.", "SSL")):
        unused = next((key for key in values if key.startswith(prefix)), None)
        if unused and part not in protocol.split("_"):
            others = " or ".join(name for name in PROTOCOLS if part in name.split("_"))
            raise ValueError(f"{unused} has no effect with security.protocol {protocol}: set {others}")
    if values:
        values["security.protocol"] = protocol


def _check_login(values: dict[str, str]) -> None:
    """Set user and password, of the JAAS line if there is one."""
    if not values.get("security.protocol", "").startswith("SASL"):
        return
    if "sasl.mechanism" not in values:
        raise ValueError(f"sasl.mechanism is missing: one of {', '.join(MODULES)}")
    mechanism = values["sasl.mechanism"] = values["sasl.mechanism"].upper()
    if mechanism not in MODULES:
        raise ValueError(f"sasl.mechanism is one of {', '.join(MODULES)}, not {mechanism}")
    line = values.pop("sasl.jaas.config", None)
    if line is not None:
        if {"sasl.username", "sasl.password"} & set(values):
            raise ValueError("sasl.jaas.config and sasl.username exclude each other")
        values |= _login_of(line, mechanism)
    for key in ("sasl.username", "sasl.password"):
        if not values.get(key):
            raise ValueError(f"{key} is missing: set it, or sasl.jaas.config")


def _login_of(line: str, mechanism: str) -> dict[str, str]:
    try:
        module = parse_jaas("sasl.jaas.config", line)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    if module.name != MODULES[mechanism]:
        raise ValueError(f"sasl.jaas.config needs the login module of {mechanism}, {MODULES[mechanism]}")
    for name in module.options:
        if name not in ("username", "password"):
            raise ValueError(f"sasl.jaas.config has an option {name}, which the pipeline does not take")
    for name in ("username", "password"):
        if not module.options.get(name):
            raise ValueError(f"sasl.jaas.config has no {name}")
    return {f"sasl.{name}": value for name, value in module.options.items()}


def _check_identification(values: dict[str, str]) -> None:
    if IDENTIFICATION not in values:
        return
    values[IDENTIFICATION] = values[IDENTIFICATION].lower()
    if values[IDENTIFICATION] not in ("https", ""):
        raise ValueError(f"{IDENTIFICATION} is https or empty, not {values[IDENTIFICATION]}")
