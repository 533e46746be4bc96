"""Every input of the corpus holds; none takes much memory. `python -m tests.fuzz` looks for more."""

from __future__ import annotations

import tracemalloc

from tests.fuzz.corpus import KEPT, corpus
from tests.fuzz.targets import NAMES, target
from tests.support.cases import for_each

MOST_MEMORY = 32 << 20
"""Bytes that one input may take beyond what there was before: the largest target decompresses a megabyte."""
MOST_KEPT = 1 << 20


@for_each("name", NAMES)
def test_inputs(name: str) -> None:
    fuzz_target = target(name)
    inputs = [*corpus(name), b"", bytes(fuzz_target.max_bytes), b"\xff" * fuzz_target.max_bytes]
    assert len(inputs) > 10
    for data in inputs:
        fuzz_target.check(data)  # modules and code compiled once do not count as memory of an input
    tracemalloc.start()
    try:
        for data in inputs:
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            fuzz_target.check(data)
            taken = tracemalloc.get_traced_memory()[1] - before
            assert taken < MOST_MEMORY, f"{taken} bytes of memory for {data.hex()}"
    finally:
        tracemalloc.stop()


def test_the_corpus_is_small() -> None:
    assert {file.stem for file in KEPT.glob("*.txt")} <= {*NAMES, "findings"}
    assert sum(file.stat().st_size for file in KEPT.iterdir()) < MOST_KEPT
