"""Exactly-once copies with kills: `python -m compat.exactly_once CLIENT --broker-kills 50 --client-kills 50`.

CLIENT is `confluent` or `java`. Prints the figures and the findings; the exit code is 0 without findings. The seed
determines which processes are killed and when; the rest of a run is not deterministic.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from compat.exactly_once.run import BROKER, Run
from compat.exactly_once.share_run import SHARE_BROKER, ShareRun
from tests.support.processes.kafka import KafkaServer
from tests.support.processes.server import BarnabasServer


def main(arguments: list[str]) -> int:
    """Run the command; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m compat.exactly_once")
    parser.add_argument("client", choices=("confluent", "java"))
    parser.add_argument("--broker-kills", type=int, default=3)
    parser.add_argument("--client-kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--rate", type=int, default=300, help="records per second of the writer")
    parser.add_argument("--spacing", type=int, default=8, help="up to how many commits are between two kills")
    parser.add_argument("--protocol", choices=("classic", "consumer"), default="classic", help="of the groups")
    parser.add_argument("--share", action="store_true", help="a share group instead of copies")
    parser.add_argument("--against", choices=("barnabas", "kafka"), default="barnabas")
    parser.add_argument("--folder", type=Path, help="directory for the histories and the broker's data")
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="exactly-once-"))
    histories = folder / "histories"
    histories.mkdir(parents=True, exist_ok=True)
    server_class = KafkaServer if options.against == "kafka" else BarnabasServer
    with server_class(folder / "broker", config=dict(SHARE_BROKER if options.share else BROKER)) as server:
        if options.share:
            run: Run = ShareRun(server, options.client, histories, options.seed, options.rate)
        else:
            run = Run(server, options.client, histories, options.seed, options.rate, protocol=options.protocol)
        outcome = run(options.broker_kills, options.client_kills, options.spacing)
    print(outcome)
    for finding in outcome.findings:
        print(finding)
    print(f"histories: {histories}")
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
