"""What bytes mean: guesses, formats, schemas, a registry's framing, hostile bytes; and bytes of what is written."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import fastavro
import msgspec
import pytest

from barnabas.console.messages.comparing import compared
from barnabas.console.messages.contents.formats import Decoder, encode
from barnabas.console.messages.contents.plain import plain_value
from barnabas.console.messages.contents.protobuf import ProtobufSchema
from barnabas.console.messages.contents.registry import HttpRegistry
from barnabas.console.messages.contents.schemas import Schemas
from barnabas.console.messages.producing import editable, headers_text, written_headers

NONE = Schemas()
USER = {
    "type": "record",
    "name": "User",
    "fields": [{"name": "name", "type": "string"}, {"name": "born", "type": "int"}],
}
ORDER_PROTO = """
syntax = "proto3";
package shop;
import "common.proto";
message Envelope { message Order { int64 id = 1; map<string, Price> prices = 2; optional string note = 3; } }
message Other { oneof one { Price price = 1; bytes raw = 2; } enum Kind { NEW = 0; OLD = 1; } Kind kind = 3; }
"""
COMMON_PROTO = 'syntax = "proto3"; package shop; message Price { sint32 cents = 1; }'


def guessed(data: bytes | None) -> tuple[str, Any]:
    content = Decoder("guess", NONE).content(data)
    return content.format, content.text if content.value is None else content.value


def test_guesses() -> None:
    assert guessed(None) == ("null", "null")
    assert guessed(b'{"a": [1, null]}') == ("json", {"a": [1, None]})
    assert guessed(b"{not json") == ("text", "{not json")
    assert guessed(b"42") == ("text", "42")
    assert guessed(b"") == ("text", "")
    assert guessed("größer\tals\n".encode()) == ("text", "größer\tals\n")
    assert guessed(struct.pack(">q", 7)) == ("integer", 7)
    assert guessed(struct.pack(">q", -2)) == ("integer", -2)
    assert guessed(msgspec.msgpack.encode({"a": b"\xff", 1: datetime(2026, 1, 1, tzinfo=UTC)})) == (
        "messagepack",
        {"a": "0xff", "1": "2026-01-01T00:00:00+00:00"},
    )
    assert guessed(b"\xff\xfe\x00") == ("hex", "ff fe 00")
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(USER), [{"name": "Ada", "born": 1815}])
    assert guessed(file.getvalue()) == ("avro", [{"name": "Ada", "born": 1815}])


def test_hostile_bytes_are_shown_and_never_fail() -> None:
    for data in (
        b"[" * 100_000,
        b"\x91" * 100_000,
        b'{"a":' * 50_000,
        b"\xdf\xff\xff\xff\xff",
        b"Obj\x01" + b"\xff" * 50,
    ):
        for format_ in ("guess", "json", "messagepack", "text", "hex", "integer", "double", "base64"):
            content = Decoder(format_, NONE).content(data)
            assert content.text
            assert len(content.line) <= 301
    surrogate = Decoder("guess", NONE).content(b'{"a": "\\ud800", "n": 123456789012345678901234567890, "x": NaN}')
    assert surrogate.value["n"] == 123456789012345678901234567890
    long = Decoder("guess", NONE).content(b'{"a": "' + b"x" * 2_000_000 + b'"}')
    assert (long.format, long.value, len(long.text)) == ("text", None, 65536)
    assert Decoder("json", NONE).content(b"nope").problem.startswith("not json:")
    with pytest.raises(ValueError, match="there is no format 'xml'"):
        Decoder("xml", NONE)


def test_values_become_plain() -> None:
    given = {
        "d": Decimal("1.50"),
        "i": Decimal(3),
        "long": Decimal("0.1234567890123456789"),
        "t": (1, {2}),
        5: b"\x00",
    }
    assert plain_value(given) == {"d": 1.5, "i": 3, "long": "0.1234567890123456789", "t": [1, [2]], "5": "0x00"}


@contextmanager
def registry(schemas: dict[str, Any]) -> Iterator[tuple[HttpRegistry, list[str]]]:
    """A Schema Registry that has these answers by path; and the paths that were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = json.dumps(schemas.get(self.path, {"error_code": 40403})).encode()
            self.send_response(200 if self.path in schemas else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        try:
            yield HttpRegistry(f"http://127.0.0.1:{server.server_port}/"), asked
        finally:
            server.shutdown()
            thread.join()


def framed(schema_id: int, data: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + data


def test_a_registrys_framing() -> None:
    account = {"type": "record", "name": "Account", "fields": [{"name": "user", "type": "User"}]}
    reference = {"name": "User", "subject": "user/value", "version": 2}
    common = {"name": "common.proto", "subject": "common", "version": 1}
    answers = {
        "/schemas/ids/1": {"schema": json.dumps(account), "references": [reference]},
        "/subjects/user%2Fvalue/versions/2": {"schema": json.dumps(USER)},
        "/schemas/ids/2": {"schemaType": "PROTOBUF", "schema": ORDER_PROTO, "references": [common]},
        "/subjects/common/versions/1": {"schemaType": "PROTOBUF", "schema": COMMON_PROTO},
        "/schemas/ids/3": {"schemaType": "JSON", "schema": "{}"},
    }
    order = ProtobufSchema.from_text("o.proto", ORDER_PROTO, {"common.proto": COMMON_PROTO})
    encoded = order.encode({"id": 2**60, "prices": {"a": {"cents": -5}}}, "shop.Envelope.Order")
    with registry(answers) as (http, asked):
        decoder = Decoder("guess", Schemas(http))
        content = decoder.content(framed(1, b"\x06Ada\xae\x1c"))
        assert (content.format, content.value, content.schema) == (
            "avro",
            {"user": {"name": "Ada", "born": 1815}},
            "registry id 1",
        )
        content = decoder.content(framed(2, b"\x04\x00\x00" + encoded))
        assert content.value == {"id": 2**60, "prices": {"a": {"cents": -5}}}
        assert content.schema == "registry id 2#shop.Envelope.Order"
        assert decoder.content(framed(3, b'{"a": 1}')).value == {"a": 1}
        for _ in range(3):
            assert decoder.content(framed(9, b"\x01\xff")).format == "hex"
        assert asked.count("/schemas/ids/9") == 1
        assert (
            Decoder("avro", Schemas(http))
            .content(framed(9, b"\xff"))
            .problem.endswith("answered 404 for /schemas/ids/9")
        )
    with pytest.raises(ValueError, match="address of a Schema Registry"):
        HttpRegistry("registry:8081")


def test_schemas_and_what_is_wrong_with_them() -> None:
    schemas = Schemas()
    schemas.add("user.avsc", "avro", json.dumps(USER).encode(), "test")
    schemas.add("common.proto", "protobuf", COMMON_PROTO.encode(), "test")
    data = encode("avro:user.avsc", '{"name": "Ada", "born": 1}', schemas)
    assert Decoder("avro:user.avsc", schemas).content(data).value == {"name": "Ada", "born": 1}
    assert Decoder("avro:user.avsc", schemas).content(framed(4, data or b"")).value == {"name": "Ada", "born": 1}
    assert "left behind" in Decoder("avro:user.avsc", schemas).content(b"\x06Ada\x02\x02").problem
    assert Decoder("protobuf:common.proto", schemas).content(b"\x08\x09").value == {"cents": -5}
    assert "not a shop.Price" in Decoder("protobuf:common.proto", schemas).content(b"\xff").problem
    for kind, text, said in (
        ("protobuf", "message {", "not a .proto file: line 1"),
        ("protobuf", 'syntax = "proto3"; message A { Foo x = 1; }', "A.x has an unknown type Foo"),
        ("protobuf", 'syntax = "proto3"; import "a.proto"; message A {}', "imports 'a.proto', which is not there"),
        ("protobuf", 'syntax = "proto3";', "has no message"),
        ("avro", "{", "not an Avro schema"),
        ("descriptor-set", "x", "descriptor set"),
    ):
        with pytest.raises(ValueError, match=said):
            schemas.add("wrong", kind, text.encode(), "test")


def test_what_is_edited_makes_the_same_bytes() -> None:
    decoder = Decoder("guess", NONE)
    for data in (b"text", b'{"a":  1}', b"\x81\xa1a\x01", b"\xff\x00", b"a\r\nb", b"", struct.pack(">q", 5), None):
        written = editable(data, decoder.content(data), NONE)
        assert encode(written.format, written.text, NONE) == data
    headers = [("a", b"b: c"), ("n", None), ("raw", b"\xff"), ("zero", b"0x11")]
    assert written_headers(headers_text(headers)) == headers


def test_differences() -> None:
    part = compared("Value", "a\nb\nc", "a\nx\nc\nd")
    assert [(line.kind, line.left, line.right) for line in part.lines] == [
        ("same", "a", "a"), ("changed", "b", "x"), ("same", "c", "c"), ("added", "", "d"),
    ]  # fmt: skip
    assert (part.differences, part.is_cut) == (2, False)
    assert compared("Value", "x" * 100_000, "").is_cut
