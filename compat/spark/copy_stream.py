"""A stream of Spark from one topic to another: `python -m compat.spark.copy_stream BOOTSTRAP SOURCE TARGET FOLDER`.

Spark's own source and sink, `format("kafka")`. The checkpoint is in FOLDER, which gets a line in the file `batches` for
each completed batch with records. SIGTERM ends it; an exception of the stream is printed and ends it with 1.
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

from tests.support.spark.connector_session import spark_session


def main(bootstrap: str, source: str, target: str, folder: Path) -> int:
    """Copy until SIGTERM; the exit code."""
    is_over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: is_over.set())
    spark = spark_session("copy", spark__task__maxFailures="4")
    servers = {"kafka.bootstrap.servers": bootstrap}
    rows = spark.readStream.format("kafka").options(**servers, subscribe=source, startingOffsets="earliest").load()
    stream = (
        rows.selectExpr("key", "value", "partition")
        .writeStream.format("kafka")
        .options(**servers, topic=target, checkpointLocation=str(folder / "checkpoint"))
        .trigger(processingTime="500 milliseconds")
        .start()
    )
    last_batch = -1
    with (folder / "batches").open("a") as batches:
        while not is_over.wait(0.2):
            if (error := stream.exception()) is not None:
                print(error, flush=True)
                return 1
            last = stream.lastProgress
            if last is not None and last["batchId"] != last_batch and last["numInputRows"]:
                last_batch = last["batchId"]
                batches.write(f"{last_batch} {last['numInputRows']}\n")
                batches.flush()
    stream.stop()
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4])))
