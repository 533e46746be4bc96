"""kafka-console-producer: send the lines of stdin."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from random import randrange
from typing import BinaryIO

from barnabas.cli.kafka_tools.arguments import BOOTSTRAP, COMMAND_CONFIG, Option, Options, Parser, Usage
from barnabas.cli.kafka_tools.common import ACTED_ON, connect_to, key_values, read_properties, warn_of_unused
from barnabas.client.producer import Producer
from barnabas.wire.clients.partitioners import Sticky

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}
LINE_READER = "org.apache.kafka.tools.LineMessageReader"
CHUNK_BYTES = 1 << 16
WITHOUT_EFFECT = (
    "message-send-max-retries",
    "retry-backoff-ms",
    "timeout",
    "metadata-expiry-ms",
    "socket-buffer-size",
)
"""Options for what Barnabas' client decides itself; using one is said on stderr."""
CONFIG = {"acks", "compression.type", "batch.size", "buffer.memory", "enable.idempotence", "max.block.ms", "linger.ms"}

PARSER = Parser(
    "kafka-console-producer",
    "This tool helps to read data from standard input and publish it to Kafka.",
    [
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option("topic", "The topic.", "TOPIC"),
        Option("sync", "Wait for the acknowledgement of each record before the next."),
        Option("compression-codec", "none, gzip (without a value), snappy, lz4 or zstd.", "CODEC", is_optional=True),
        Option("batch-size", "Size of a batch, bytes.", "BYTES", "int", default=16384),
        Option("max-partition-memory-bytes", "The same as --batch-size.", "BYTES", "int", default=16384),
        Option("max-memory-bytes", "Bytes that wait to be sent.", "BYTES", "long", default=32 * 1024 * 1024),
        Option("request-required-acks", "-1 (all), 0 or 1.", "ACKS", default="-1"),
        Option("request-timeout-ms", "Time for a request, in milliseconds.", "MS", "int"),
        Option("max-block-ms", "Time to wait for a broker and for acknowledgements.", "MS", "long", default=60000),
        Option("message-send-max-retries", "No effect: records are retried until --max-block-ms.", "COUNT", "int"),
        Option("retry-backoff-ms", "No effect.", "MS", "long"),
        Option("timeout", "No effect: records are sent as soon as no more input waits.", "MS", "long"),
        Option("metadata-expiry-ms", "No effect.", "MS", "long"),
        Option("socket-buffer-size", "No effect.", "BYTES", "int"),
        Option("line-reader", "Only Kafka's LineMessageReader.", "CLASS", default=LINE_READER),
        Option("reader-property", "How lines are read, see below; may be repeated.", "KEY=VALUE"),
        Option("reader-config", "File with such properties.", "FILE"),
        Option("property", "Old name of --reader-property.", "KEY=VALUE"),
        Option("command-property", "Configuration of the producer, as acks=1; may be repeated.", "KEY=VALUE"),
        Option("producer-property", "Old name of --command-property.", "KEY=VALUE"),
        Option("producer.config", "Old name of --command-config.", "FILE"),
    ],
    "Reader properties: parse.key, key.separator (tab), parse.headers, headers.delimiter (tab), headers.separator (,), "
    "headers.key.separator (:), null.marker, ignore.error.",
)


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    options = PARSER.parse(arguments)
    options.require("topic")
    config = _config(options)
    lines = LineReader(_reader_config(options))
    batch_bytes = int(config.get("batch.size", 16384))
    with connect_to(options.get("bootstrap-server"), config, int(config["max.block.ms"]) / 1000) as cluster:
        producer = Producer(
            cluster,
            lambda count: Sticky(count, randrange, batch_bytes),
            acks=choice(ACKS, config["acks"], "acks"),
            codec=choice(CODECS, config["compression.type"], "compression.type"),
            batch_bytes=batch_bytes,
            buffer_bytes=int(config.get("buffer.memory", 32 * 1024 * 1024)),
            idempotent=config.get("enable.idempotence", "true") != "false",
        )
        try:
            _send(producer, options, lines)
        except ValueError as error:
            print(error, file=sys.stderr)
            return 1
        finally:
            producer.flush()
    return 0


# --- options


def _config(options: Options) -> dict[str, str]:
    """The producer's configuration: options, then `--command-property`, then the file, then defaults."""
    _not_both(options, "producer-property", "command-property")
    _not_both(options, "producer.config", "command-config")
    if not options.has("bootstrap-server"):
        raise Usage("Error while validating the bootstrap address")
    file = options.get("producer.config") or options.get("command-config")
    config = read_properties(file) if file else {}
    config |= _pairs([*options.all("producer-property"), *options.all("command-property")])
    warn_of_unused(config, ACTED_ON | CONFIG)
    unused = [f"--{name}" for name in WITHOUT_EFFECT if options.has(name)]
    warn_of_unused(unused, ())
    named = {
        "acks": "request-required-acks",
        "batch.size": "max-partition-memory-bytes" if options.has("max-partition-memory-bytes") else "batch-size",
        "buffer.memory": "max-memory-bytes",
        "max.block.ms": "request-timeout-ms" if options.has("request-timeout-ms") else "max-block-ms",
    }
    for key, name in named.items():
        if key not in config or options.has(name):
            config[key] = str(options.only(name))
    if options.has("compression-codec"):
        config["compression.type"] = options.only("compression-codec") or "gzip"
    config.setdefault("compression.type", "none")
    return config


def _not_both(options: Options, old: str, new: str) -> None:
    if options.has(old) and options.has(new):
        raise Usage(f"Options --{new} and --{old} cannot be specified together.")
    if options.has(old):
        print(f"Warning: --{old} is deprecated and will be removed in a future version. Use --{new} instead.")


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    try:
        return key_values(texts)
    except ValueError as error:
        raise Usage(str(error)) from None


def choice(known: Mapping[str, int], text: str, key: str) -> int:
    """The value of a config that has a few; `Usage` for others."""
    if text not in known:
        raise Usage(f"Invalid value {text} for configuration {key}: String must be one of: {', '.join(known)}")
    return known[text]


def _reader_config(options: Options) -> dict[str, str]:
    _not_both(options, "property", "reader-property")
    if options.get("line-reader") != LINE_READER:
        raise Usage(f"--line-reader {options.get('line-reader')}: Barnabas runs no Java classes, only {LINE_READER}")
    config = read_properties(options.get("reader-config")) if options.has("reader-config") else {}
    return config | _pairs([*options.all("property"), *options.all("reader-property")])


# --- lines


class LineReader:
    """Kafka's LineMessageReader: headers, key and value of a line."""

    KEYS = ("parse.key", "key.separator", "parse.headers", "headers.delimiter", "headers.separator")
    MORE = ("headers.key.separator", "null.marker", "ignore.error", "topic")

    def __init__(self, config: Mapping[str, str]) -> None:
        warn_of_unused(config, (*self.KEYS, *self.MORE))
        self.parse_key = _is_true(config, "parse.key")
        self.parse_headers = _is_true(config, "parse.headers")
        self.ignore_error = _is_true(config, "ignore.error")
        self.key_separator = config.get("key.separator", "\t")
        self.delimiter = config.get("headers.delimiter", "\t")
        self.separator = config.get("headers.separator", ",")
        self.header_separator = config.get("headers.key.separator", ":")
        self.null = config.get("null.marker")
        self.number = 0
        self._check()

    def _check(self) -> None:
        names = {
            "headers.delimiter": self.delimiter,
            "headers.separator": self.separator,
            "headers.key.separator": self.header_separator,
        }
        pairs = [(a, b) for at, a in enumerate(names) for b in list(names)[at + 1 :]]
        equal = [f"{a} and {b}" for a, b in pairs if names[a] == names[b]]
        equal += [
            f"null.marker and {a}"
            for a, text in {"key.separator": self.key_separator, **names}.items()
            if text == self.null
        ]
        if equal:
            raise Usage(f"{equal[0]} may not be equal")

    def __call__(self, line: str) -> tuple[list[tuple[str, bytes | None]], bytes | None, bytes | None]:
        """Headers, key and value of the next line; ValueError with Kafka's message if a separator is missing."""
        self.number += 1
        headers, rest = self._cut(self.parse_headers, line, line, self.delimiter, "headers delimiter")
        key, value = self._cut(self.parse_key, line, rest, self.key_separator, "key separator")
        pairs = [] if headers is None or headers == self.null else self._headers(headers)
        return pairs, None if key is None else self._bytes(key), self._bytes(value)

    def _cut(self, is_parsed: bool, line: str, rest: str, mark: str, name: str) -> tuple[str | None, str]:
        if not is_parsed:
            return None, rest
        first, separator, after = rest.partition(mark)
        if separator:
            return first, after
        if self.ignore_error:
            return None, rest
        raise ValueError(f"No {name} found on line number {self.number}: '{line}'")

    def _headers(self, text: str) -> list[tuple[str, bytes | None]]:
        headers: list[tuple[str, bytes | None]] = []
        for pair in text.split(self.separator):
            name, mark, value = pair.partition(self.header_separator)
            if not mark and not self.ignore_error:
                raise ValueError(f"No header key separator found in pair '{pair}' on line number {self.number}")
            if name == self.null:
                what = f"Header keys should not be equal to the null marker '{self.null}'"
                raise ValueError(f"{what} as they can't be null")
            headers.append((name, self._bytes(value) if mark else None))
        return headers

    def _bytes(self, text: str) -> bytes | None:
        return None if text == self.null else text.encode("utf-8", "surrogateescape")


def _is_true(config: Mapping[str, str], key: str) -> bool:
    return config.get(key, "").strip().lower() == "true"


def _send(producer: Producer, options: Options, lines: LineReader) -> None:
    topic, is_sync = options.only("topic"), options.has("sync")
    for block in _blocks(sys.stdin.buffer):
        for line in block:
            headers, key, value = lines(line)
            producer.send(topic, value, key, headers)
            if is_sync:
                producer.flush()
        producer.flush()


def _blocks(source: BinaryIO) -> Iterator[list[str]]:
    """Lines of stdin in blocks as they become available; a prompt before each on a terminal."""
    is_terminal = source.isatty() and sys.stdout.isatty()
    rest = b""
    while True:
        if is_terminal:
            print(">", end="", flush=True)
        chunk = source.read1(CHUNK_BYTES)  # type: ignore[attr-defined]
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop() if chunk else b""
        if not chunk and lines == [b""]:
            return
        yield [line.removesuffix(b"\r").decode("utf-8", "surrogateescape") for line in lines]
        if not chunk:
            return
