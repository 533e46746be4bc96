"""Record batches as JSON that people read: the fields of their headers, and every record with key, value and headers.

Text is text, and other bytes are {"base64": "…"}. Header fields with their default are left out. Large batches, and
those whose content could not be made again from this form, stay in base64 as in Kafka's JSON.
"""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any, Final

from barnabas.wire.batches.batch_builder import BatchBuilder
from barnabas.wire.batches.batch_format import (
    LOG_APPEND_TIME,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    Record,
)
from barnabas.wire.batches.batch_header import BatchView, iter_batches
from barnabas.wire.batches.compression import Codec
from barnabas.wire.batches.record_reader import iter_records
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDS: Final = "records"
"""The field of Produce, Fetch and ShareFetch that has batches."""
MAX_OPENED: Final = 4 * 1024 * 1024
"""Characters of base64 that are opened: records in this form take ten times their memory."""
_DEFAULTS: Final[dict[str, Any]] = {
    "compression": Codec.NONE.name.lower(),
    "partitionLeaderEpoch": NO_PARTITION_LEADER_EPOCH,
    "producerId": NO_PRODUCER_ID,
    "producerEpoch": NO_PRODUCER_EPOCH,
    "baseSequence": NO_SEQUENCE,
    "isTransactional": False,
    "isControl": False,
    "logAppendTimeMs": None,
    "deleteHorizonMs": None,
}


def opened(body: Any) -> Any:
    """The JSON of a message with its batches as lists of objects."""
    return _replaced(body, _opened)


def closed(body: Any) -> Any:
    """The JSON of a message as Kafka has it, batches in base64. ValueError for batches that cannot be made."""
    return _replaced(body, _closed)


def _replaced(body: Any, replace: Callable[[Any], Any]) -> Any:
    if isinstance(body, list):
        return [_replaced(part, replace) for part in body]
    if not isinstance(body, dict):
        return body
    return {name: replace(part) if name == RECORDS else _replaced(part, replace) for name, part in body.items()}


def _opened(text: Any) -> Any:
    if not text or len(text) > MAX_OPENED:
        return text
    try:
        batches = list(iter_batches(b64decode(text), partial_ok=True))
        shown = list(map(_shown, batches))
        built_again = list(map(_built, shown))
        is_same = [_content(BatchView(batch)) for batch in built_again] == list(map(_content, batches))
    except (KafkaError, ValueError):
        return text
    return shown if shown and is_same else text


def _closed(shown: Any) -> Any:
    if not isinstance(shown, list):
        return shown
    try:
        return b64encode(b"".join(map(_built, shown))).decode("ascii")
    except (AttributeError, KeyError, TypeError, struct.error) as error:
        raise ValueError(f"records: {type(error).__name__}: {error}") from None


def _content(batch: BatchView) -> tuple[object, ...]:
    """All that a client learns of a batch; sizes and compressed bytes may be others when it is made again."""
    return _header(batch), batch.last_offset, list(iter_records(batch))


def _header(batch: BatchView) -> dict[str, Any]:
    return {
        "compression": Codec(batch.codec).name.lower(),
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "logAppendTimeMs": batch.max_timestamp if batch.timestamp_type == LOG_APPEND_TIME else None,
        "deleteHorizonMs": batch.delete_horizon_ms,
    }


def _shown(batch: BatchView) -> dict[str, Any]:
    header = {name: value for name, value in _header(batch).items() if value != _DEFAULTS[name]}
    offsets = {"baseOffset": batch.base_offset, "lastOffset": batch.last_offset}
    return offsets | header | {RECORDS: list(map(_record, iter_records(batch)))}


def _record(record: Record) -> dict[str, Any]:
    shown: dict[str, Any] = {"offset": record.offset, "timestamp": record.timestamp}
    shown |= {"key": _text(record.key), "value": _text(record.value)}
    if record.headers:
        shown["headers"] = [[name, _text(value)] for name, value in record.headers]
    return shown


def _built(shown: dict[str, Any]) -> bytes:
    header = _DEFAULTS | shown
    builder = BatchBuilder(
        header["baseOffset"],
        Codec[header["compression"].upper()],
        LOG_APPEND_TIME if header["logAppendTimeMs"] is not None else 0,
        header["producerId"],
        header["producerEpoch"],
        header["baseSequence"],
        header["isTransactional"],
        header["isControl"],
        header["partitionLeaderEpoch"],
        log_append_time_ms=header["logAppendTimeMs"],
        delete_horizon_ms=header["deleteHorizonMs"],
    )
    for record in header[RECORDS]:
        headers = [(str(name), _data(value)) for name, value in record.get("headers", ())]
        builder.append(record["timestamp"], _data(record["key"]), _data(record["value"]), headers, record["offset"])
    return builder.build(header["lastOffset"])


def _text(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode("ascii")}


def _data(shown: Any) -> bytes | None:
    if shown is None:
        return None
    return b64decode(shown["base64"], validate=True) if isinstance(shown, dict) else bytes(shown, "utf-8")
