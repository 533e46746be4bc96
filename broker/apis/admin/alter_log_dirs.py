"""AlterReplicaLogDirs (34): move replicas of this broker to other log directories (KIP-113).

Answered when the moves have begun; DescribeLogDirs shows how far they are. A replica that this broker does not have yet
is answered REPLICA_NOT_AVAILABLE, and is created in the directory later, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.registry import api
from barnabas.broker.event_loop.waiting import pause
from barnabas.coord.security.acls import Operation
from barnabas.storage import layout
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from barnabas.broker.context import Broker, RequestContext
    from barnabas.storage.directories.log_dir import LogDir


def _none_moved(request: AlterReplicaLogDirsRequest, error: KafkaError) -> AlterReplicaLogDirsResponse:
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=int(error.code))
                    for index in topic.partitions
                ],
            )
            for directory in request.dirs
            for topic in directory.topics
        ]
    )


@api(AlterReplicaLogDirsRequest, requires=Operation.ALTER, on_error=_none_moved)
async def alter_replica_log_dirs(
    ctx: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Begin the moves."""
    paths = {  # the last directory counts if a replica is named with several
        (topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    results: dict[str, AlterReplicaLogDirTopicResult] = {}
    for number, ((topic, index), path) in enumerate(paths.items()):
        if number:
            await pause()
        result = results.get(topic)
        if result is None:
            result = results[topic] = AlterReplicaLogDirTopicResult(topic_name=topic)
        code = _move(ctx.broker, path, topic, index)
        result.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=index, error_code=int(code)))
    return AlterReplicaLogDirsResponse(results=list(results.values()))


def _move(broker: Broker, path: str, topic: str, index: int) -> ErrorCode:
    try:
        if not layout.may_have_future(topic, index):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        log_dir = _directory(broker, path)
        try:
            partition = broker.partitions.get(topic, index)
        except KafkaError as error:
            if error.code == ErrorCode.KAFKA_STORAGE_ERROR:
                raise
            broker.log_dirs.prefer(topic, index, log_dir)
            exists = broker.image.partition(topic, index) is not None
            return ErrorCode.REPLICA_NOT_AVAILABLE if exists else error.code
        broker.dir_moves.move(partition, log_dir)
    except KafkaError as error:
        return error.code
    except OSError as error:
        broker.log_dir_failures.report(log_dir, f"new future replica of {topic}-{index}", error)
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE


def _directory(broker: Broker, path: str) -> LogDir:
    for log_dir in broker.log_dirs.dirs:
        if log_dir.path == path:
            if log_dir.failure is not None:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")
            return log_dir
    raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"Log directory {path} is not found in the config.")
