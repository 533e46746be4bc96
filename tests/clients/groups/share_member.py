"""One member of a share group, run as a separate process so that a test can kill it.

`python share_member.py '{"bootstrap": ..., "group": ..., "topic": ..., "diary": ...}'`; `hold` is how many seconds it
waits before it acknowledges a batch. It writes JSON lines: `got` with the values and delivery counts of a poll,
`accepted` with the acknowledged ones. On SIGTERM the member leaves the group and exits.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

from confluent_kafka import KafkaException, ShareConsumer


def main():
    options = json.loads(sys.argv[1])
    over = []
    signal.signal(signal.SIGTERM, lambda *_: over.append(1))
    consumer = ShareConsumer(
        {
            "bootstrap.servers": options["bootstrap"],
            "group.id": options["group"],
            "share.acknowledgement.mode": "explicit",
            "reconnect.backoff.max.ms": 500,
        }
    )
    consumer.subscribe([options["topic"]])
    with Path(options["diary"]).open("a", buffering=1) as diary:

        def write(event, **values):
            diary.write(json.dumps({"event": event} | values) + "\n")

        write("start")
        while not over:
            one_poll(consumer, options.get("hold", 0), write)
        consumer.close()


def one_poll(consumer, hold_s, write):
    try:
        messages = [message for message in consumer.poll(0.2) if message.error() is None]
        if not messages:
            return
        values = [message.value().decode() for message in messages]
        write("got", values=values, counts=[message.delivery_count() for message in messages])
        time.sleep(hold_s)  # processing time
        for message in messages:
            consumer.acknowledge(message)
        if not any(consumer.commit_sync(30).values()):
            write("accepted", values=values)
    except KafkaException as error:
        write("error", text=str(error))


if __name__ == "__main__":
    main()
