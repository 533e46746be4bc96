"""Compares the images that Kafka's classes and Barnabas make of random metadata logs, and of our controller's logs.

    python -m compat.kafka.metadata_images 20000 [SEED]      # prints how many logs have the same image

Compared are every field of the image after the log; whether and where a log is refused; and snapshots: Kafka's image
after ours, ours after Kafka's, each after its own. Kafka loads a snapshot over another image, as a node that is behind.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import METADATA_VERSION_FEATURE, ClusterImage, UnknownMetadataError
from barnabas.coord.cluster.metadata_log.checkpoint import build_checkpoint
from barnabas.coord.cluster.metadata_log.image_records import image_records
from barnabas.coord.cluster.metadata_log.metadata_batches import replay_batches, replay_batches_in_steps
from barnabas.coord.cluster.metadata_log.metadata_serde import decode_record
from barnabas.coord.cluster.metadata_log.replay import replay_record
from barnabas.wire.steps import result_of
from compat.kafka.controller_logs import controller_log
from compat.kafka.image_form import Form, image_form
from compat.kafka.metadata_streams import Stream
from compat.kafka.programs import run_program

LOGS_OF_A_RUN = 1000
"""So many logs go to Kafka's classes together."""


class Log(NamedTuple):
    """A metadata log, and the image that Barnabas makes of it."""

    name: str
    """The command that repeats it."""
    batches: Sequence[bytes]
    image: ClusterImage
    failed: int | None
    """The number of the batch that was refused; the image is of no interest then."""


def load(name: str, batches: Sequence[bytes]) -> Log:
    """Replay a log, once whole and once in steps."""
    whole, failed = _replayed(batches, replay_batches)
    stepped, failed_in_steps = _replayed(batches, lambda *arguments: result_of(replay_batches_in_steps(*arguments)))
    assert failed == failed_in_steps, f"{name}: refused at batch {failed}, in steps at {failed_in_steps}"
    if failed is None:
        different = list(_differences(image_form(whole), image_form(stepped)))
        assert not different, f"{name}: steps lead to another image: {different}"
    return Log(name, batches, whole, failed)


def _replayed(batches: Sequence[bytes], replay: Any) -> tuple[ClusterImage, int | None]:
    image = ClusterImage()
    for number, batch in enumerate(batches):
        try:
            replay(batch, image, ClusterDelta())
        except UnknownMetadataError:
            return image, number
    return image, None


def kafkas(logs: Iterable[Log]) -> list[Form]:
    """The results of Kafka's classes for logs."""
    lines = run_program("MetadataImages", stdin="".join(_question(log) + "\n" for log in logs))
    return [json.loads(line) for line in lines if line.startswith("{")]


def _question(log: Log) -> str:
    question = {"log": base64.b64encode(b"".join(log.batches)).decode()}
    if log.failed is None:
        question["snapshot"] = base64.b64encode(_snapshot(log.image)).decode()
    return json.dumps(question)


def _snapshot(image: ClusterImage) -> bytes:
    batches = build_checkpoint(
        image_records(image),
        quorum=image.quorum,
        epoch=1,
        last_timestamp_ms=0,
        now_ms=0,
        metadata_version=image.metadata_version,
    )
    return b"".join(batches)


def difference(log: Log, theirs: Form) -> str | None:
    """The difference in a line; None if there is none."""
    refused = theirs["failed"][0] if "failed" in theirs else None
    if refused != log.failed:
        return f"Kafka refuses batch {theirs.get('failed')}, Barnabas {log.failed}"
    if refused is not None:
        return None
    own = image_form(log.image)
    if own != theirs["image"]:
        return "image: " + "; ".join(_differences(theirs["image"], own))
    if theirs["snapshot"] is None:
        is_known = METADATA_VERSION_FEATURE in log.image.features
        return f"Kafka writes no snapshot: {theirs['lost']}" if is_known else None
    if theirs["lost"]:
        return None
    image = theirs["after_own"] or theirs["image"]
    after_theirs = ClusterImage()
    for record in theirs["snapshot"]:
        replay_record(after_theirs, decode_record(base64.b64decode(record)), ClusterDelta())
    after_theirs.quorum = log.image.quorum
    after_own = ClusterImage()
    replay_batches(_snapshot(log.image), after_own, ClusterDelta())
    for what, actual in (
        ("Kafka after our snapshot", theirs["after_snapshot"] or theirs["image"]),
        ("Barnabas after Kafka's snapshot", image_form(after_theirs)),
        ("Barnabas after its snapshot", image_form(after_own)),
    ):
        if actual != image:
            return f"{what}: " + "; ".join(_differences(image, actual))
    return None


def _differences(theirs: Any, ours: Any, path: str = "") -> Iterator[str]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted(theirs.keys() | ours.keys()):
            yield from _differences(theirs.get(key, "absent"), ours.get(key, "absent"), f"{path}/{key}")
    elif theirs != ours:
        yield f"{path} is {theirs!r} in Kafka, {ours!r} here"


def compare(logs: Sequence[Log]) -> list[str]:
    """A line for each log that differs."""
    differences = []
    for start in range(0, len(logs), LOGS_OF_A_RUN):
        some = logs[start : start + LOGS_OF_A_RUN]
        answers = kafkas(some)
        assert len(answers) == len(some), f"{len(answers)} answers about {len(some)} logs"
        for log, theirs in zip(some, answers, strict=True):
            line = difference(log, theirs)
            if line is not None:
                differences.append(f"{log.name}: {line}")
    return differences


def random_log(seed: int) -> Log:
    """A log of random records."""
    return load(f"random log {seed}", Stream(seed).batches)


def controllers_log(seed: int) -> Log:
    """A log that our controller has written; the controller's own image has to equal the log's."""
    cluster = controller_log(seed)
    log = load(f"log of our controller {seed}", cluster.batches)
    assert log.failed is None, f"{log.name}: refused at batch {log.failed}"
    different = list(_differences(image_form(log.image), image_form(cluster.image)))
    assert not different, f"{log.name}: the controller's image is another: {different}"
    return log


def main(arguments: list[str]) -> int:
    """Compare so many logs; 1 if any differs."""
    count = int(arguments[0]) if arguments else 1000
    first = int(arguments[1]) if len(arguments) > 1 else 1
    different: list[str] = []
    for start in range(first, first + count, LOGS_OF_A_RUN):
        seeds = range(start, min(start + LOGS_OF_A_RUN, first + count))
        different += compare([controllers_log(seed) if seed % 4 == 0 else random_log(seed) for seed in seeds])
    for line in different[:10]:
        print(line)
    print(f"{count - len(different)} of {count} logs have the same image")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
