"""Measures Barnabas and Apache Kafka 4.4.0 on this machine, in alternating runs, and prints the ratio of each row.

    python -m bench [--rows WORDS] [--runs N] [--quick] [--dir FOLDER] [--out FILE]

Each case runs three times on each broker by default, in alternating order, and the median is reported. The cases of a
group share settings and servers, which start on new data directories and are warmed up. The tables are written to
`bench/RESULTS.md`; with `--rows`, `--quick` or `--before` only to the file given with `--out`.

With `--before FOLDER` the second broker is Barnabas in another checkout, to measure the effect of a change.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from confluent_kafka import KafkaException

from bench.cases.case import FULL, KINDS, QUICK, Case, Group, Mode, Scale
from bench.cases.groups import all_groups
from bench.noise import CpuShares, IdleWait
from bench.report import Line, lines_of, machine, print_header, print_line, write_markdown
from bench.stage import Stage
from tests.support.processes.server import ROOT

Samples = dict[str, dict[str, list[float]]]


def main() -> int:
    """Run the chosen cases; returns 1 if one could not be measured."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # stops the brokers too
    tempfile.tempdir = str(options.dir) if options.dir else None
    scale = QUICK if options.quick else FULL
    groups = _chosen(all_groups(scale), options)
    if options.before:
        groups = [_compared_with(options.before.resolve(), group) for group in groups]
    if options.list:
        print("\n".join(f"{group.title}: {case.name}" for group in groups for case in group.cases))
        return 0
    runs = options.runs or (1 if options.quick else 3)
    started = time.monotonic()
    idle_wait = IdleWait(scale.idle_wait_s)
    print(machine(), file=sys.stderr)
    tables: dict[str, tuple[Group, list[Line]]] = {}
    failed = 0
    for group in groups:
        lines, failures = _run_group(group, scale, runs, idle_wait)
        tables[group.title] = (group, lines)
        failed += failures
    took_s = time.monotonic() - started
    print(f"\n{took_s / 60:.1f} minutes in total", file=sys.stderr)
    out = options.out or (None if options.quick or options.rows or options.before else ROOT / "bench" / "RESULTS.md")
    if out:
        write_markdown(Path(out), tables, runs, took_s, quick=options.quick)
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Compares Barnabas with Apache Kafka 4.4.0.")
    parser.add_argument(
        "--rows", nargs="+", metavar="WORDS", help="only cases whose name or group contains one of these"
    )
    parser.add_argument("--runs", type=int, help="runs of each case on each broker (default 3; 1 with --quick)")
    parser.add_argument("--quick", action="store_true", help="a short run of most cases, not a measurement")
    parser.add_argument("--dir", type=Path, help="location of the data directories: the disk to measure")
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="another checkout to measure instead of Kafka")
    parser.add_argument("--out", type=Path, help="write the tables to this file")
    parser.add_argument("--list", action="store_true", help="list the cases and exit")
    return parser.parse_args()


def _chosen(groups: list[Group], options: argparse.Namespace) -> list[Group]:
    """The groups with only the chosen cases; groups without any are omitted."""

    def is_chosen(group: Group, case: Case) -> bool:
        if not options.rows:
            return case.quick or not options.quick
        return any(word.lower() in f"{group.title}: {case.name}".lower() for word in options.rows)

    selected = [replace(group, cases=tuple(case for case in group.cases if is_chosen(group, case))) for group in groups]
    return [group for group in selected if group.cases]


def _compared_with(before: Path, group: Group) -> Group:
    """The group with another checkout instead of Kafka; without goals, because they are relative to Kafka."""
    cases = tuple(replace(case, goals={}) for case in group.cases)
    return replace(group, cases=cases, kafka=group.barnabas, before=before, sides=("now", "before"))


def _run_group(group: Group, scale: Scale, runs: int, idle_wait: IdleWait) -> tuple[list[Line], int]:
    """Run the cases of a group and print each result; returns the lines and the number of cases that failed."""
    lines: list[Line] = []
    failures = 0
    started = time.monotonic()
    print_header(group)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, Stage(group, scale, Path(folder)) as stage:
        for case in group.cases:
            idle_wait.wait()
            cpu = CpuShares()
            try:
                samples = _measure(case, group, scale, runs, stage)
            except (RuntimeError, OSError, KafkaException) as error:
                failures += 1
                print(f"{case.name}: could not be measured: {error}", file=sys.stderr)
                continue
            for line in lines_of(case, samples, cpu.read()):
                lines.append(line)
                print_line(line)
    print(f"{group.title}: {time.monotonic() - started:.0f} s", file=sys.stderr)
    return lines, failures


def _measure(case: Case, group: Group, scale: Scale, runs: int, stage: Stage) -> Samples:
    """The values of all runs, by figure and kind of broker."""
    samples: Samples = defaultdict(lambda: defaultdict(list))

    def add(kind: str, figures: dict[str, float]) -> None:
        for figure, value in figures.items():
            samples[figure][kind].append(value)

    if case.mode is Mode.OWN_SERVER_ALL_RUNS:
        stage.pause_all()
        for kind in KINDS:
            for figures in case.measure(group, kind, scale, runs):
                add(kind, figures)
        return samples
    for run in range(runs * case.repeat):
        for kind in KINDS if run % 2 == 0 else KINDS[::-1]:
            if case.mode is Mode.OWN_SERVER:
                stage.pause_all()
                add(kind, case.measure(group, kind, scale))
            else:
                add(kind, case.measure(stage.activate(kind), scale))
    return samples


if __name__ == "__main__":
    sys.exit(main())
