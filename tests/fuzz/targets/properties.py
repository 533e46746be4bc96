"""Files of settings: the syntax of properties, JAAS lines, the values of config keys, and what a broker makes of them.

Only ConfigError. Settings and the sentences about them can be written into a log; the text form of a value is read as
the same value.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.broker.config.keys import BROKER_KEYS
from barnabas.broker.config.load import load
from barnabas.broker.config.server_config import base_key
from barnabas.client.security.jaas import JaasError
from barnabas.client.security.jaas import parse_jaas as parse_client_jaas
from barnabas.coord.security.jaas import parse_jaas
from barnabas.storage.topic_keys import TOPIC_KEYS
from barnabas.wire.configdef import ConfigError
from barnabas.wire.properties import parse_properties
from tests.fuzz.targets import Input, is_sayable

MAX_BYTES = 1024
KEYS = sorted(BROKER_KEYS.values(), key=lambda key: key.name) + sorted(TOPIC_KEYS.values(), key=lambda key: key.name)
FILES = (
    """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
controller.listener.names=CONTROLLER
log.dirs=/tmp/logs
""",
    r"""listeners=SASL_PLAINTEXT://[::1]:9092
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,OAUTHBEARER
listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule \
  required user_alice=\"secret\" user_bob='x\\ty';
""",
    """advertised.listeners=INTERNAL://broker:9092,EXTERNAL://1.2.3.4:9094
inter.broker.listener.name=INTERNAL
listener.security.protocol.map=INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT
""",
    r"""max.connections.per.ip.overrides=10.0.0.1:5,[::1]:7
super.users=User:admin;User:CN=x
broker.rack=r\u00fc\ud83d\ude00
""",
    "# a comment\n!another\na:b\nc d\\\n  e\nf\\:\\=\\ g = \\t\\n\n",
)


def check(data: bytes) -> None:
    """The first byte: a file, a JAAS line, or the value of a key."""
    source = Input(data)
    kind = source.number(3)
    try:
        if kind == 0:
            _file(source.rest.decode("utf-8", "replace"))
        elif kind == 1:
            _jaas(source.rest.decode("utf-8", "replace"))
        else:
            key = KEYS[source.number(len(KEYS))]
            value = key.parse(source.rest.decode("utf-8", "replace"))
            text = key.format(value)
            assert text is None or key.parse(text) == value or value != value, f"{key.name} is read again as another"
    except ConfigError as error:
        is_sayable(str(error))


def _file(text: str) -> None:
    settings = parse_properties(text)
    for name, value in settings.items():
        is_sayable(name, value)
    config = load({name: value for name, value in settings.items() if base_key(name) is not None}, {}, None)
    is_sayable(*config.warnings)


def _jaas(text: str) -> None:
    for parse in (lambda: parse_jaas("key", text), lambda: parse_client_jaas(text)):
        try:
            entry = parse()
        except (ConfigError, JaasError) as error:
            is_sayable(str(error))
            continue
        names = f"LoginModule({entry[0]}, {', '.join(entry.options)})"
        secrets = [value for value in entry.options.values() if len(value) > 20 and value not in names]
        assert not any(value in repr(entry) for value in secrets), "a value is shown"


def seeds() -> Iterator[bytes]:
    """Files, lines of every mechanism, and a value of every key."""
    for text in FILES:
        yield b"\0" + text.encode()
    modules = ("plain.PlainLoginModule", "scram.ScramLoginModule", "oauthbearer.OAuthBearerLoginModule")
    for module in modules:
        line = (
            f"org.apache.kafka.common.security.{module} required username=\"a\" password='b\\101c' /* x */ y=z; // end"
        )
        yield b"\x01" + line.encode()
    for number, key in enumerate(KEYS):
        text = key.format(key.default) or "1"
        yield b"\x02" + number.to_bytes(2, "big") + text.encode()
