"""The form of cassettes: nothing is lost but secrets, and a file that is wrong is one sentence."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from barnabas.kit.cassette.batches import closed, opened
from barnabas.kit.cassette.exchange import Exchange
from barnabas.kit.cassette.secrets import SECRET
from barnabas.kit.cassette.text import HEADER, CassetteError, read, text_of
from barnabas.tools.dump.secrets import HIDDEN
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.batches.records import Codec, ControlRecordType, build_batch, control_batch
from barnabas.wire.codec.json_form import api_name, from_json, json_name, to_json
from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.wire.messages.security.sasl import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.security.tokens import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from barnabas.wire.registry import message_for
from barnabas.wire.schema import Message
from tests.cassette.exchanges import exchange_of
from tests.support.cases import for_each
from tests.support.requests import recorded

WHOLE = build_batch([(1, b"k", b"v")])


def produced(records: bytes) -> Exchange:
    """An unanswered Produce with these batches."""
    request = ProduceRequest(
        acks=0, topic_data=[TopicProduceData(name="t", partition_data=[PartitionProduceData(records=records)])]
    )
    return Exchange(1, 0.5, ApiKey.PRODUCE, 9, "shop", request.encode(9), None, 9)


def read_one(text: str) -> Exchange:
    """The only exchange of a cassette with this text after its first line."""
    (exchange,) = read(f"{HEADER}\n{text}".splitlines(keepends=True))
    return exchange


def test_frames_of_real_clients_are_written_and_read() -> None:
    for frames in recorded.exchanges():
        exchange = exchange_of(frames)
        text = text_of(exchange)
        read_back = read_one(text)
        assert text_of(read_back) == text, frames.name
        assert (read_back.api, read_back.version, read_back.response_version) == (
            exchange.api,
            exchange.version,
            exchange.response_version,
        )
        assert (read_back.client_id, read_back.at, read_back.took) == (exchange.client_id, 1.25, 0.5)


def test_messages_of_kafka_are_not_changed() -> None:
    """Opening and closing the batches of a body gives the same body; random bytes are no batches."""
    for vector in recorded.vectors():
        body = to_json(vector.message_class.decode(vector.data, vector.version), vector.version)
        message = from_json(vector.message_class, closed(json.loads(json.dumps(opened(body)))), vector.version)
        assert message.encode(vector.version) == vector.data, vector.line


@for_each(
    "batch",
    [
        build_batch([(5, b"k", b"v", [("h", b"\xff"), ("n", None)]), (6, None, None)]),
        build_batch([(5, b"\xff\xfe", b"")], base_offset=7, producer_id=3, producer_epoch=1, base_sequence=4),
        build_batch([(5, b"k", b"v")], transactional=True, producer_id=3, producer_epoch=1, base_sequence=0),
        build_batch([(5, b"k", b"v"), (9, b"l", b"w")], delete_horizon_ms=4, partition_leader_epoch=2),
        control_batch(ControlRecordType.COMMIT, b"\0\0\0\0\0\1", timestamp_ms=5, transactional=True, producer_id=1),
    ],
    ids=["headers", "bytes", "transaction", "horizon", "control"],
)
def test_batches_are_made_again_byte_by_byte(batch: bytes) -> None:
    exchange = produced(batch + batch)
    text = text_of(exchange)
    assert '"baseOffset"' in text
    assert read_one(text).request == exchange.request


@for_each("codec", list(Codec))
@for_each("append_time", [None, 99])
def test_records_in_every_codec(codec: Codec, append_time: int | None) -> None:
    more = {} if append_time is None else {"timestamp_type": 1, "log_append_time_ms": append_time}
    text = text_of(produced(build_batch([(n, b"k", b"value " * n) for n in range(9)], codec=codec, **more)))
    assert '"value": "value value "' in text
    assert ("compression" in text) == (codec != Codec.NONE)
    assert text_of(read_one(text)) == text


def test_the_partial_batch_at_the_end_of_a_fetch_is_left_out() -> None:
    assert text_of(produced(WHOLE + WHOLE[:30])) == text_of(produced(WHOLE))


def test_large_batches_stay_in_base64() -> None:
    exchange = produced(build_batch([(n, None, b"x" * 900_000) for n in range(4)]))
    assert '"baseOffset"' not in text_of(exchange)
    assert read_one(text_of(exchange)).request == exchange.request


def test_bytes_that_are_no_batches_stay() -> None:
    exchange = produced(b"\0" * 100)
    assert read_one(text_of(exchange)).request == exchange.request


SECRETS: list[tuple[Message, Message, int]] = [
    (SaslAuthenticateRequest(auth_bytes=b"\0alice\0SECRET"), SaslAuthenticateResponse(auth_bytes=b"v=SECRET"), 2),
    (
        AlterUserScramCredentialsRequest(
            upsertions=[ScramCredentialUpsertion(name="alice", salt=b"SECRET", salted_password=b"SECRET")]
        ),
        AlterUserScramCredentialsResponse(),
        0,
    ),
    (RenewDelegationTokenRequest(hmac=b"SECRET"), RenewDelegationTokenResponse(), 2),
    (
        IncrementalAlterConfigsRequest(
            resources=[
                IncrementalAlterConfigsRequestAlterConfigsResource(
                    configs=[
                        IncrementalAlterConfigsRequestAlterableConfig(
                            name="listener.name.a.ssl.key.password", value="SECRET"
                        )
                    ]
                )
            ]
        ),
        IncrementalAlterConfigsResponse(),
        1,
    ),
]


@for_each(("request_", "response", "version"), SECRETS, ids=lambda message: type(message).__name__)
def test_secrets_are_not_written(request_: Message, response: Message, version: int) -> None:
    api = ApiKey(request_.api_key)
    bodies = request_.encode(version), response.encode(version)
    assert b"SECRET" in bodies[0]
    text = text_of(Exchange(1, 0.0, api, version, None, bodies[0], bodies[1], version, 0.0))
    assert "SECRET" not in text
    assert "U0VDUkVU" not in text
    assert '""' in text or HIDDEN in text
    assert b"SECRET" not in read_one(text).request


def test_each_secret_field_exists() -> None:
    """The names are the names of Kafka's messages."""
    names = set()

    def collect(kind: type[object]) -> None:
        for field in kind.declared:  # type: ignore[attr-defined]
            names.add(json_name(field.name))
            if field.struct_class is not None:
                collect(field.struct_class)

    for api in (36, 38, 41, 51, 58):
        for kind in message_for(api):
            collect(kind)
    assert names >= SECRET


def session() -> str:
    """A cassette of three requests."""
    return f"{HEADER}\n" + "".join([text_of(produced(WHOLE)), text_of(produced(b"")), text_of(produced(WHOLE + WHOLE))])


def refusal(text: str) -> str:
    """Why a text is no cassette."""
    with pytest.raises(CassetteError) as refused:
        list(read(text.splitlines(keepends=True)))
    return str(refused.value)


def test_files_that_are_no_cassettes() -> None:
    first = 'it is no cassette: its first line must be {"cassette": 1}'
    assert refusal("") == first
    assert refusal("no JSON\n") == first
    assert refusal("[]\n") == first
    assert refusal('{"log": 1}\n') == first
    assert refusal('{"cassette": 2}\n') == "it is a cassette of version 2, and this Barnabas reads version 1"
    whole = session()
    assert refusal(whole[:-2]).startswith("it is cut: the request that begins on line ")
    assert refusal(whole.replace('"Produce"', '"Produse"', 1)) == (
        "the request that begins on line 2 cannot be used: Kafka has no API 'Produse'"
    )
    assert refusal(whole.replace('  "version": 9,\n', "", 1)) == (
        "the request that begins on line 2 cannot be used: 'version' is missing"
    )
    assert "is not JSON" in refusal(whole.replace('"acks": 0', '"acks": ', 1))
    assert "ProduceRequest.acks: expected a number" in refusal(whole.replace('"acks": 0', '"acks": "all"', 1))
    assert "records: KeyError: 'timestamp'" in refusal(whole.replace('"timestamp"', '"time"', 1))


def test_a_file_cut_anywhere() -> None:
    """It has fewer requests, or is refused; a cut between two requests cannot be seen."""
    whole = session()
    for end in range(len(HEADER) + 1, len(whole)):
        try:
            assert len(list(read(whole[:end].splitlines(keepends=True)))) < 4
        except CassetteError:
            continue


@for_each("seed", range(200))
def test_changed_files_are_read_or_refused(seed: int) -> None:
    choices = random.Random(seed)
    characters = list(session())
    for _ in range(choices.randint(1, 4)):
        characters[choices.randrange(len(characters))] = choices.choice('{}[]",:0-9eE \n\x00ä\u2028')
    with suppress(CassetteError):
        for exchange in read("".join(characters).splitlines(keepends=True)):
            text_of(exchange)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values in a value."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in members:
        yield (*path, name)
        yield from places(member, (*path, name))


@for_each("wrong", [None, -1, 1 << 70, 1.5, True, "\ud800", [None], {"base64": 5}], ids=repr)
def test_values_of_other_types(wrong: object) -> None:
    """Wherever somebody has written something else, it is read or refused."""
    fetches = [exchange for exchange in recorded.exchanges() if exchange.api_key == ApiKey.FETCH]
    text = text_of(exchange_of(min(fetches, key=lambda exchange: len(exchange.response))))
    for whole in (text, text_of(produced(build_batch([(1, b"k", b"v", [("h", b"w")])], codec=Codec.GZIP)))):
        for path in places(json.loads(whole)):
            value = json.loads(whole)
            at = value
            for name in path[:-1]:
                at = at[name]
            at[path[-1]] = wrong
            with suppress(CassetteError):
                read_one(json.dumps(value, indent=1))


def test_a_value_that_is_nested_too_deep() -> None:
    assert "is not JSON" in refusal(f'{HEADER}\n{{"a":\n{"[" * 100_000}\n}}\n')


def test_names_of_apis() -> None:
    assert api_name(ApiKey.ADD_PARTITIONS_TO_TXN) == "AddPartitionsToTxn"
