"""`from barnabas.pipeline import ...`: the names are functions, independent of earlier imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.lazy import skip_without

skip_without("pyspark")

ASK = """
from barnabas.pipeline import deduplicated, read_topic, session, write_topic
assert all(map(callable, (deduplicated, read_topic, session, write_topic)))
"""


@pytest.mark.parametrize("before", ["", "import barnabas.pipeline.run", "import barnabas.pipeline.kafka"])
def test_names_for_notebooks_are_functions(before: str) -> None:
    subprocess.run([sys.executable, "-c", f"{before}\n{ASK}"], check=True, timeout=100)
