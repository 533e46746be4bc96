"""Measures Barnabas and Apache Kafka 4.4.0 on this machine, in alternating runs, and prints their ratios.

    python -m bench [--rows WORDS] [--runs N] [--quick] [--dir FOLDER] [--out FILE]

Each case runs at least three times on each broker, in alternating order; the medians are reported. The cases of a group
share settings and servers on new data directories, which are warmed up. The tables are written to `bench/RESULTS.md`
(with `--rows`, `--quick` or `--before` only to the file of `--out`).

With `--before FOLDER` the second broker is Barnabas in another checkout, to measure a change.
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

from bench.case import FULL, KINDS, QUICK, Case, Group, On, Scale
from bench.groups import all_groups
from bench.noise import Calm, Watch
from bench.report import Line, lines_of, machine, print_header, print_line, write_markdown
from bench.servers import ROOT
from bench.stage import Stage

Samples = dict[str, dict[str, list[float]]]


def main() -> int:
    """Run the selected cases; the exit code is 1 if one could not be measured."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the brokers are stopped as well
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
    calm = Calm(scale.calm_s)
    print(machine(), file=sys.stderr)
    tables: dict[str, tuple[Group, list[Line]]] = {}
    failed = 0
    for group in groups:
        lines, failures = _run_group(group, scale, runs, calm)
        tables[group.title] = (group, lines)
        failed += failures
    took_s = time.monotonic() - started
    print(f"\n{took_s / 60:.1f} minutes in all", file=sys.stderr)
    out = options.out or (None if options.quick or options.rows or options.before else ROOT / "bench" / "RESULTS.md")
    if out:
        write_markdown(Path(out), tables, runs, took_s, quick=options.quick)
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Compare Barnabas with Apache Kafka 4.4.0.")
    parser.add_argument(
        "--rows", nargs="+", metavar="WORDS", help="only the cases whose name, or their group's, contains one of these"
    )
    parser.add_argument("--runs", type=int, help="runs of each case on each broker (default 3; 1 with --quick)")
    parser.add_argument("--quick", action="store_true", help="smaller and shorter runs, for a first impression")
    parser.add_argument("--dir", type=Path, help="location of the data directories: the disk to measure")
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="another checkout, measured instead of Kafka")
    parser.add_argument("--out", type=Path, help="write the table to this file")
    parser.add_argument("--list", action="store_true", help="list the cases")
    return parser.parse_args()


def _chosen(groups: list[Group], options: argparse.Namespace) -> list[Group]:
    """The groups with selected cases."""

    def is_chosen(group: Group, case: Case) -> bool:
        if not options.rows:
            return case.quick or not options.quick
        return any(word.lower() in f"{group.title}: {case.name}".lower() for word in options.rows)

    kept = [replace(group, cases=tuple(case for case in group.cases if is_chosen(group, case))) for group in groups]
    return [group for group in kept if group.cases]


def _compared_with(before: Path, group: Group) -> Group:
    """The group with another checkout in place of Kafka, without the goals for Kafka."""
    cases = tuple(replace(case, goals={}) for case in group.cases)
    return replace(group, cases=cases, before=before, sides=("now", "before"))


def _run_group(group: Group, scale: Scale, runs: int, calm: Calm) -> tuple[list[Line], int]:
    """Run and print every case of a group; returns the lines and the number of failed cases."""
    lines: list[Line] = []
    failures = 0
    started = time.monotonic()
    print_header(group)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, Stage(group, scale, Path(folder)) as stage:
        for case in group.cases:
            calm.wait()
            watch = Watch()
            try:
                samples = _measure(case, group, scale, runs, stage)
            except (RuntimeError, OSError, KafkaException) as error:
                failures += 1
                print(f"{case.name}: could not be measured: {error}", file=sys.stderr)
                continue
            for line in lines_of(case, samples, watch.read()):
                lines.append(line)
                print_line(line)
    print(f"{group.title}: {time.monotonic() - started:.0f} s", file=sys.stderr)
    return lines, failures


def _measure(case: Case, group: Group, scale: Scale, runs: int, stage: Stage) -> Samples:
    """The values of the runs, by figure and kind of broker."""
    samples: Samples = defaultdict(lambda: defaultdict(list))

    def note(kind: str, figures: dict[str, float]) -> None:
        for figure, value in figures.items():
            samples[figure][kind].append(value)

    if case.on is On.SERIES:
        stage.clear()
        for kind in KINDS:
            for figures in case.measure(group, kind, scale, runs):
                note(kind, figures)
        return samples
    for run in range(runs):
        for kind in KINDS if run % 2 == 0 else KINDS[::-1]:
            if case.on is On.OWN:
                stage.clear()
                note(kind, case.measure(group, kind, scale))
            else:
                note(kind, case.measure(stage.turn(kind), scale))
    return samples


if __name__ == "__main__":
    sys.exit(main())
