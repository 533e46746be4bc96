"""Record batches of magic 2: the public names of the modules that read, build and patch them.

`batch_format` has the layout, `batch_header` reads headers and walks over batches, `record_reader` reads the records
of a batch, `batch_builder` and `control_records` build batches. Invalid bytes raise CorruptRecord (CORRUPT_MESSAGE)
and no other exception.
"""

from __future__ import annotations

from barnabas.wire.batches.batch_builder import BatchBuilder, build_batch, encode_batch
from barnabas.wire.batches.batch_format import (
    CODEC_MASK,
    CONTROL_BIT,
    CRC_START,
    CREATE_TIME,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LENGTH_OFFSET,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_OFFSET,
    MAX_INT32,
    MIN_BATCH_LENGTH,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    PARTITION_LEADER_EPOCH_OFFSET,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    ControlRecordType,
    Header,
    Record,
    increment_sequence,
)
from barnabas.wire.batches.batch_header import BatchHeader, BatchView, iter_batches, set_log_append_time, walk_batches
from barnabas.wire.batches.compression import Codec
from barnabas.wire.batches.control_records import (
    control_batch,
    control_key,
    control_record_type,
    end_txn_coordinator_epoch,
    end_txn_marker,
)
from barnabas.wire.batches.record_reader import RecordFields, iter_record_fields, iter_records, records_in_range
from barnabas.wire.errors import CorruptRecord

__all__ = [
    "CODEC_MASK",
    "CONTROL_BIT",
    "CRC_START",
    "CREATE_TIME",
    "DELETE_HORIZON_BIT",
    "HEADER",
    "HEADER_SIZE",
    "LENGTH_OFFSET",
    "LOG_APPEND_TIME",
    "LOG_OVERHEAD",
    "MAGIC",
    "MAGIC_OFFSET",
    "MAX_INT32",
    "MIN_BATCH_LENGTH",
    "NO_PARTITION_LEADER_EPOCH",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "PARTITION_LEADER_EPOCH_OFFSET",
    "TIMESTAMP_TYPE_BIT",
    "TRANSACTIONAL_BIT",
    "BatchBuilder",
    "BatchHeader",
    "BatchView",
    "Codec",
    "ControlRecordType",
    "CorruptRecord",
    "Header",
    "Record",
    "RecordFields",
    "build_batch",
    "control_batch",
    "control_key",
    "control_record_type",
    "encode_batch",
    "end_txn_coordinator_epoch",
    "end_txn_marker",
    "increment_sequence",
    "iter_batches",
    "iter_record_fields",
    "iter_records",
    "records_in_range",
    "set_log_append_time",
    "walk_batches",
]
