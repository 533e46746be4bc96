"""`barnabas serve`: read the options, run the broker.

stdout carries the ready line and then the client configurations, nothing else; logs go to stderr. A mistake
on the command line or in the configuration is one sentence on stderr and exit code 2, never a traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.cli.light import Option, UsageError, help_text, read_options

if TYPE_CHECKING:
    from barnabas.broker.config.options import ServeOptions

EXIT_USAGE = 2
ABOUT = """Run a broker. It prints a line with "[KafkaServer id=1] started" and its address on stdout when it accepts
connections, then client configurations to copy. SIGTERM and SIGINT stop it cleanly (exit code 0)."""
OPTIONS = (
    Option("--listen", "HOST:PORT", "Address to listen on (listeners); port 0 takes a free one. [127.0.0.1:9092]"),
    Option("--data-dir", "DIR", "Where to keep the data (log.dirs). [a temporary directory, removed at a clean exit]"),
    Option("--config", "FILE", "A server.properties file."),
    Option("--set", "KEY=VALUE", "Set any Kafka broker key; may be repeated.", repeatable=True),
    Option(
        "--profile",
        "dev|kafka",
        "dev: single-node sense (replication factors clamped to the brokers there are, no initial rebalance delay); "
        "kafka: Kafka's defaults to the letter. [dev]",
        choices=("dev", "kafka"),
    ),
    Option("--ready-file", "FILE", "Write HOST:PORT to this file when connections are accepted."),
    Option("--log-level", "LEVEL", "debug, info, warn or error. [info]", choices=("debug", "info", "warn", "error")),
    Option("-h", "", "Show this help; also --help."),
)
EPILOGUE = """Any Kafka key can also come from the environment, as in the apache/kafka image: num.partitions is
KAFKA_NUM_PARTITIONS. The command line goes before the environment, the environment before the file, the file
before the defaults.

Exit codes: 0 after a clean stop, 1 when the broker failed, 2 when the options or the configuration are wrong."""


def serve(arguments: Sequence[str]) -> int:
    """Run `barnabas serve` with these arguments until it is told to stop; return the exit code."""
    given = ["-h" if argument == "--help" else argument for argument in arguments]
    if "-h" in given:
        sys.stdout.write(help_text("barnabas serve [OPTIONS]", ABOUT, OPTIONS, EPILOGUE))
        return 0
    try:
        options = serve_options(given, os.environ)
    except UsageError as error:
        sys.stderr.write(f"barnabas serve: {error}\n")
        return EXIT_USAGE
    from barnabas.broker.server import run

    return run(options)


def serve_options(arguments: Sequence[str], environment: Mapping[str, str]) -> ServeOptions:
    """What `arguments` ask for. `UsageError` with one sentence when they cannot be understood."""
    from barnabas.broker.config.options import ServeOptions

    given = read_options(OPTIONS, arguments)

    def last(name: str) -> str | None:
        return given[name][-1] if name in given else None

    return ServeOptions(
        sets=_kafka_keys(given),
        config_file=last("--config"),
        environment=environment,
        profile=last("--profile") or "dev",
        ready_file=last("--ready-file"),
        log_level=last("--log-level"),
    )


def _kafka_keys(given: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The Kafka keys of the command line: those of --set, and those --listen and --data-dir stand for."""
    keys: dict[str, str] = {}
    for text in given.get("--set", ()):
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set wants KEY=VALUE, as in --set num.partitions=3, not {text!r}")
        keys[key.strip()] = value.strip()
    for option, key in (("--listen", "listeners"), ("--data-dir", "log.dirs")):
        if option not in given:
            continue
        if key in keys or (key == "log.dirs" and "log.dir" in keys):
            raise UsageError(f"{option} and --set {key} say the same thing; give one of them")
        value = given[option][0]
        keys[key] = _listener(value) if option == "--listen" else value
    return keys


def _listener(address: str) -> str:
    """`127.0.0.1:9092` as Kafka writes a listener; an empty host means every interface, as with Kafka."""
    host, colon, port = address.rpartition(":")
    bare_ipv6 = ":" in host and not (host.startswith("[") and host.endswith("]"))
    if not colon or bare_ipv6 or "/" in host or " " in host:
        raise UsageError(f"--listen wants HOST:PORT, as in 127.0.0.1:9092 or [::1]:9092, not {address!r}")
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise UsageError(f"--listen wants a port between 0 and 65535, not {port!r}")
    return f"PLAINTEXT://{address}"
