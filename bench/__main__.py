"""Measures Barnabas and Apache Kafka 4.4.0 on this machine, in alternating runs, and prints their ratio row by row.

    python -m bench [--rows WORDS] [--runs N] [--quick] [--out FILE]

Each case runs at least three times on each broker, the order changing from run to run, and the medians count. Both
brokers have Kafka's default settings (so syncs are left to the system) on fresh data directories, both are warmed up
before. The table goes to `bench/RESULTS.md` (with `--rows` or `--quick` only if `--out` says so).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

from bench.cases import AS_KAFKA, FULL, QUICK, Case, Scale, all_cases, warm_up
from bench.real_kafka import KafkaServer
from bench.report import Line, lines_of, machine, print_header, print_line, write_markdown
from bench.servers import ROOT, BarnabasServer
from bench.target import Target

KINDS = ("barnabas", "kafka")
Samples = dict[str, dict[str, list[float]]]


def main() -> int:
    """Run the cases asked for; the exit code is 1 when one could not be measured."""
    options = _options()
    scale = QUICK if options.quick else FULL
    cases = [case for case in all_cases() if not options.rows or any(word in case.name for word in options.rows)]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    runs = options.runs or (1 if options.quick else 3)
    lines: list[Line] = []
    failed = False
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, ExitStack() as stack:
        print(machine(), file=sys.stderr)
        targets = {} if all(case.fresh for case in cases) else _targets(Path(folder), stack, scale)
        print_header()
        for case in cases:
            try:
                samples = _measure(case, scale, runs, targets)
            except (RuntimeError, OSError) as error:
                failed = True
                print(f"{case.name}: could not be measured: {error}", file=sys.stderr)
                continue
            for line in lines_of(case, samples, os.getloadavg()[0]):
                lines.append(line)
                print_line(line)
    out = options.out or (None if options.quick or options.rows else ROOT / "bench" / "RESULTS.md")
    if out:
        write_markdown(Path(out), lines, runs, quick=options.quick)
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Barnabas beside Apache Kafka 4.4.0.")
    parser.add_argument("--rows", nargs="+", metavar="WORDS", help="only the cases whose name contains one of these")
    parser.add_argument("--runs", type=int, help="runs of each case on each broker (default 3; 1 with --quick)")
    parser.add_argument("--quick", action="store_true", help="less of everything: a look, not a measurement")
    parser.add_argument("--out", type=Path, help="write the table to this file")
    parser.add_argument("--list", action="store_true", help="name the cases and leave")
    return parser.parse_args()


def _targets(folder: Path, stack: ExitStack, scale: Scale) -> dict[str, Target]:
    servers = [BarnabasServer(folder / "barnabas", config=AS_KAFKA), KafkaServer(folder / "kafka")]
    targets = {server.name: Target(stack.enter_context(server)) for server in servers}
    for name, target in targets.items():
        print(f"warming up {name}", file=sys.stderr)
        warm_up(target, scale)
    return targets


def _measure(case: Case, scale: Scale, runs: int, targets: dict[str, Target]) -> Samples:
    samples: Samples = defaultdict(lambda: defaultdict(list))
    for run in range(runs):
        for kind in KINDS if run % 2 == 0 else KINDS[::-1]:
            figures = case.measure(kind if case.fresh else targets[kind], scale)
            for figure, value in figures.items():
                samples[figure][kind].append(value)
    return samples


if __name__ == "__main__":
    sys.exit(main())
