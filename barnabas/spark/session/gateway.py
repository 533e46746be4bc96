"""Ends Spark's Java if its start is interrupted; PySpark 4.0 would leave it running without an owner."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import SparkContext, java_gateway


@contextmanager
def ended_if_interrupted() -> Iterator[None]:
    """Kill what PySpark has started in this block if the block does not end normally."""
    started: list[subprocess.Popen[bytes]] = []
    names = vars(java_gateway)
    original, connected = names["Popen"], SparkContext._gateway

    def start(*command: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(original(*command, **options))
        return started[-1]

    names["Popen"] = start
    try:
        yield
    except BaseException:
        for process in started:
            process.kill()
            process.wait()
        if SparkContext._gateway is not connected:  # the next session starts another one
            SparkContext._gateway = SparkContext._jvm = None
        raise
    finally:
        names["Popen"] = original
