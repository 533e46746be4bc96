"""The session of the pipeline: failed tasks are tried again, and nothing is left in the working directory.

It runs in a process of its own: tests of plain Spark in this process may have made a session with other settings.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(300)
PROGRAM = """
import json, sys
from pathlib import Path

from py4j.protocol import Py4JJavaError

from barnabas.spark.session.spark import log_file, session

where = Path(sys.argv[1])
settings = {"spark.ui.enabled": "false", "spark.local.dir": str(where / "local")}
spark = session("tests", master="local[2]", settings=settings, log=where / "spark.log")
mark = where / "failed"


def fail_once(value):
    if not mark.exists():
        mark.touch()
        raise OSError("only the first time")
    return value


def fail(value):
    raise OSError("a failure for the log")


seen = {"collected": spark.sparkContext.parallelize([7], 1).map(fail_once).collect(), "has_failed": mark.exists()}
before = log_file().stat().st_size
try:
    spark.sparkContext.parallelize([7], 1).map(fail).collect()
except Py4JJavaError as error:
    seen["error"] = str(error)
seen["log"] = log_file().read_text()[before:]
seen["rows"] = spark.range(3).count()
spark.stop()
print(json.dumps(seen))
"""


@pytest.fixture(scope="module")
def seen(spark_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program has seen, its stderr, and what it has left in its working directory."""
    where, directory = tmp_path_factory.mktemp("spark"), tmp_path_factory.mktemp("working-directory")
    command = [sys.executable, "-c", PROGRAM, str(where)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=directory, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result | {"stderr": done.stderr, "left": [path.name for path in directory.iterdir()]}


def test_a_failed_task_is_tried_again(seen: dict[str, Any]) -> None:
    assert seen["collected"] == [7]
    assert seen["has_failed"]


def test_spark_makes_no_directories_in_the_working_directory(seen: dict[str, Any]) -> None:
    assert seen["rows"] == 3
    assert seen["left"] == []


def test_the_errors_of_a_task_are_in_sparks_log(seen: dict[str, Any]) -> None:
    assert "a failure for the log" in seen["error"]
    assert "a failure for the log" in seen["log"]
    assert "a failure for the log" not in seen["stderr"]
