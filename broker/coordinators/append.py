"""Appends the records of a coordinator's result to its partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from barnabas.wire.batches.batch_builder import batch_of_one
from barnabas.wire.batches.compression import Codec
from barnabas.wire.batches.records import BatchBuilder
from barnabas.wire.configdef import ConfigError
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.machine import Moment, Result
    from barnabas.wire.configdef import ConfigKey

_RECORD_OVERHEAD: Final = 32
"""Upper bound for the lengths, attributes and deltas of one record, in bytes."""


def append_records(partition: Partition, leader_epoch: int, result: Result, at: Moment, codec: int) -> int:
    """Append the records of `result` in one write and return the offset of the first.

    They are split into batches of at most `max.message.bytes`. Raises KafkaError if the append fails:
    NOT_LEADER_OR_FOLLOWER if this broker does not lead in `leader_epoch`, NOT_ENOUGH_REPLICAS as for acks=all (G2, T1).
    """
    if partition.is_closed or not partition.is_leader or partition.leader_epoch != leader_epoch:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if len(partition.replicas) > 1:
        partition.check_in_sync_replicas()
    records = result.records
    if len(records) == 1 and result.producer is None and not codec:  # nearly always
        ((key, value),) = records
        batch = memoryview(bytearray(batch_of_one(at.now_ms, key, value)))
        return partition.append(batch, at.now, origin="coordinator", is_checked=True).first_offset
    settings: dict[str, Any] = {"codec": codec}
    if result.producer is not None:
        producer_id, producer_epoch = result.producer
        settings |= {"producer_id": producer_id, "producer_epoch": producer_epoch, "transactional": True}
    limit = partition.log.config.max_message_bytes
    batches = bytearray()
    builder = BatchBuilder(**settings)
    for key, value in records:
        size = len(key) + len(value or b"") + _RECORD_OVERHEAD
        if builder.count and builder.size_estimate + size > limit:
            batches += builder.build()
            builder = BatchBuilder(**settings)
        builder.append(at.now_ms, key, value)
    batches += builder.build()
    return partition.append(memoryview(batches), at.now, origin="coordinator").first_offset


def codec_of(config: ServerConfig, key: ConfigKey[int]) -> int:
    """The compression codec that `key` sets by its id; ConfigError for an unknown id."""
    codec_id = config[key]
    if codec_id not in {codec.value for codec in Codec}:
        names = ", ".join(f"{codec.value} ({codec.name.lower()})" for codec in Codec)
        raise ConfigError(f"{key.name}={codec_id} is not a compression codec. Valid values are {names}")
    return codec_id
