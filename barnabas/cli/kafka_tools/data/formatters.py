"""Kafka's formatters of console consumers (DefaultMessageFormatter and others) and its deserializers."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.cli.kafka_tools.common import warn_of_unused

PREFIX = "org.apache.kafka.tools.consumer."
SERIALIZATION = "org.apache.kafka.common.serialization."
Deserializer = Callable[[bytes], bytes]


class Message(NamedTuple):
    """A record to print."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: Callable[[], str]
    """CreateTime or LogAppendTime; asked for only when it is printed."""
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    delivery_count: int | None = None


def _number(name: str, form: str) -> Deserializer:
    size = struct.calcsize(form)

    def text(data: bytes) -> bytes:
        if len(data) != size:
            raise ValueError(f"Size of data received by {name} is not {size}")
        return str(struct.unpack(form, data)[0]).encode()

    return text


def _boolean(data: bytes) -> bytes:
    if data not in {b"\x00", b"\x01"}:
        raise ValueError("Unexpected byte received by BooleanDeserializer")
    return b"true" if data == b"\x01" else b"false"


def _string(data: bytes) -> bytes:
    return data.decode("utf-8", "replace").encode()


DESERIALIZERS: dict[str, Deserializer] = {
    "StringDeserializer": _string,
    "UUIDDeserializer": _string,
    "LongDeserializer": _number("LongDeserializer", ">q"),
    "IntegerDeserializer": _number("IntegerDeserializer", ">i"),
    "ShortDeserializer": _number("ShortDeserializer", ">h"),
    "DoubleDeserializer": _number("DoubleDeserializer", ">d"),
    "FloatDeserializer": _number("FloatDeserializer", ">f"),
    "BooleanDeserializer": _boolean,
}


def deserializer(name: str | None) -> Deserializer | None:
    """A deserializer of Kafka by the name of its class; ValueError for others."""
    if not name:
        return None
    deserializer = DESERIALIZERS.get(name.removeprefix(SERIALIZATION))
    if deserializer is None:
        known = ", ".join(DESERIALIZERS)
        raise ValueError(f"{name}: Barnabas runs no Java classes; there are {known}")
    return deserializer


class DefaultFormatter:
    """Key, value and what else was chosen, with separators. Source: Kafka's DefaultMessageFormatter."""

    SWITCHES = ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key", "value")
    TEXTS = ("key.separator", "line.separator", "headers.separator", "null.literal")
    CLASSES = ("key.deserializer", "value.deserializer", "headers.deserializer")

    def __init__(self, config: Mapping[str, str]) -> None:
        known = (*(f"print.{name}" for name in self.SWITCHES), *self.TEXTS, *self.CLASSES)
        warn_of_unused(config, known)
        default = {"print.value": "true"}
        self.printed = [
            name
            for name in self.SWITCHES
            if config.get(f"print.{name}", default.get(f"print.{name}", "")).strip().lower() == "true"
        ]
        texts = {"key.separator": "\t", "line.separator": "\n", "headers.separator": ",", "null.literal": "null"}
        self.separator, self.line_end, self.between_headers, self.null = (
            config.get(name, texts[name]).encode("utf-8", "surrogateescape") for name in self.TEXTS
        )
        self.key, self.value, self.header = (deserializer(config.get(name)) for name in self.CLASSES)

    def __call__(self, message: Message) -> bytes:
        """The bytes to print."""
        parts = [getattr(self, f"_{name}")(message) for name in self.printed]
        return self.separator.join(parts) + self.line_end if parts else b""

    def _text(self, data: bytes | None, how: Deserializer | None) -> bytes:
        shown = self.null if data is None else data
        return shown if how is None else how(shown)

    def _timestamp(self, message: Message) -> bytes:
        return f"{message.timestamp_type()}:{message.timestamp}".encode()

    def _partition(self, message: Message) -> bytes:
        return b"Partition:%d" % message.partition

    def _offset(self, message: Message) -> bytes:
        return b"Offset:%d" % message.offset

    def _delivery(self, message: Message) -> bytes:
        return b"Delivery:NOT_PRESENT" if message.delivery_count is None else b"Delivery:%d" % message.delivery_count

    def _epoch(self, message: Message) -> bytes:  # noqa: ARG002 (Kafka's console consumer has none either)
        return b"Epoch:NOT_PRESENT"

    def _headers(self, message: Message) -> bytes:
        if not message.headers:
            return b"NO_HEADERS"
        pairs = [name.encode() + b":" + self._text(value, self.header) for name, value in message.headers]
        return self.between_headers.join(pairs)

    def _key(self, message: Message) -> bytes:
        return self._text(message.key, self.key)

    def _value(self, message: Message) -> bytes:
        return self._text(message.value, self.value)


def no_formatter(message: Message) -> bytes:  # noqa: ARG001 (prints nothing)
    """Kafka's NoOpMessageFormatter."""
    return b""


Formatter = Callable[[Message], bytes]


def formatter(name: str, config: Mapping[str, str]) -> Formatter:
    """A formatter of Kafka by the name of its class. ValueError for others, with the name of the class as in Kafka."""
    short = name.removeprefix(PREFIX)
    if short in {"DefaultMessageFormatter", "LoggingMessageFormatter"}:
        return DefaultFormatter(config)
    if short == "NoOpMessageFormatter":
        return no_formatter
    raise ValueError(name)
