"""`from barnabas.pipeline import ...`: the names are functions, independent of earlier imports."""

from __future__ import annotations

import subprocess
import sys

from tests.support.lazy import skip_without

skip_without("pyspark")

PROGRAM = """
import importlib, sys
for before in ("barnabas", "barnabas.spark.run", "barnabas.spark.topics.kafka"):
    for name in [name for name in sys.modules if name.startswith("barnabas")]:
        del sys.modules[name]
    importlib.import_module(before)
    from barnabas.pipeline import deduplicated, read_topic, session, write_topic
    assert all(map(callable, (deduplicated, read_topic, session, write_topic))), before
    print(before)
"""


def test_names_for_notebooks_are_functions() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=100, capture_output=True, text=True)
    assert done.stdout.split() == ["barnabas", "barnabas.spark.run", "barnabas.spark.topics.kafka"]
