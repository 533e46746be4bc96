"""What a start imports: the fewer modules, the sooner it is ready. Counts, since times depend on the machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import barnabas

MOST_MODULES = 229
"""Modules of ours, with their packages, that are imported when the broker is ready."""
MESSAGES = {"headers", "records", "records.metadata_records", "records.raft_records"}
"""The modules of messages that a start needs; modules of an API are imported with its first request."""
NOT_NEEDED = {
    *("asyncio", "click", "difflib", "email", "http", "numpy", "rich", "tomllib", "uuid", "xml", "yaml"),
    *("lz4", "mmh3", "re2", "snappy", "xxhash", "zstandard"),
    *("_bz2", "_hashlib", "_lzma", "_pickle", "_ssl", "bdb", "idna.core"),
    *("barnabas.cli.app", "barnabas.client", "barnabas.tools.dump", "barnabas.pipeline", "barnabas.spark"),
    *("anyio", "jinja2", "msgspec", "starlette", "uvicorn", "barnabas.console", "barnabas.cli.serve.console"),
    *("barnabas.tools.secure", "barnabas.cli.serve.secure", "cryptography"),
    *(
        "barnabas.broker.config.config_schema",
        "barnabas.broker.replicas.cleaning.cleaner",
        "barnabas.storage.recover.recovery",
    ),
    *(
        "barnabas.broker.apis.fetch.fetch",
        "barnabas.broker.apis.metadata.metadata",
        "barnabas.broker.apis.produce.produce",
    ),
    *("barnabas.coord.groups.coordinator", "barnabas.coord.share_state.coordinator"),
}
"""Modules that are imported at first use, or by the warm-up after the ready line."""
PROGRAM = """
import gc, json, signal, sys
from barnabas.broker.start import warm_up

def ready(loop, *_apis, **_options):
    print("modules", json.dumps({"modules": sorted(sys.modules), "collects": gc.isenabled()}), flush=True)
    signal.raise_signal(signal.SIGTERM)

warm_up.start_later = ready
from barnabas.cli import main
main(["serve", "--listen", "127.0.0.1:0", "--data-dir", sys.argv[1]])
"""


@pytest.fixture(scope="module")
def at_ready(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The state of a broker's process after the ready line; its directory was used before, as nearly always."""
    data_dir = str(tmp_path_factory.mktemp("start") / "data")
    command = [sys.executable, "-c", PROGRAM, data_dir]
    # An unknown BARNABAS_ variable is answered with similar names, which needs another module; the tests of platforms
    # set PYTHONPATH to a sitecustomize that imports modules of its own. A planted bug is in a tree of its own.
    others = ("KAFKA_", "BARNABAS_", "PYTHONPATH")
    env = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    env["PYTHONPATH"] = str(Path(barnabas.__file__).parents[1])
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(data_dir).parent, env=env)
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("modules "))
    state: dict[str, Any] = json.loads(line.removeprefix("modules "))
    return state


def test_a_start_imports_nothing_that_it_does_not_need(at_ready: dict[str, Any]) -> None:
    modules = set(at_ready["modules"])
    assert "trio" in modules
    assert sorted(modules & NOT_NEEDED) == []
    ours = {name for name in modules if name.startswith("barnabas.")}
    assert len(ours) <= MOST_MODULES, sorted(ours)
    prefix = "barnabas.wire.messages."
    assert {name.removeprefix(prefix) for name in ours if name.startswith(prefix)} == MESSAGES


def test_garbage_is_collected_again_after_the_start(at_ready: dict[str, Any]) -> None:
    assert at_ready["collects"] is True
