"""Record transcripts: `python -m tests.cli.kafka_tools.record NAME…` runs Kafka's tools and rewrites the files.

`--barnabas` runs Barnabas' commands instead and prints what differs, without writing.
"""

from __future__ import annotations

import difflib
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from tests.cli.kafka_tools import ours
from tests.cli.kafka_tools.player import SECURED, Run, play, secured_kafka
from tests.support import transcript
from tests.support.jvm import kafka_scripts as jvm


def play_alone(name: str, run: Run, folder: Path) -> str:
    """Play a transcript against a broker of its own."""
    if not name.startswith(SECURED):
        return play(name, run, folder)
    with contextmanager(secured_kafka)(folder / "broker") as secured:
        return play(name, run, folder, secured)


def main(arguments: list[str]) -> int:
    names = [name for name in arguments if not name.startswith("-")]
    names = names or sorted(path.stem for path in transcript.FOLDER.glob("*.txt"))
    is_kafkas = "--barnabas" not in arguments
    for name in names:
        path = transcript.FOLDER / f"{name}.txt"
        with tempfile.TemporaryDirectory() as folder:
            if is_kafkas:
                path.write_text(play_alone(name, jvm.run, Path(folder)), encoding="utf-8")
                continue
            played = play_alone(name, ours.run, Path(folder))
            lines = (path.read_text(encoding="utf-8").splitlines(), played.splitlines())
            print("\n".join(difflib.unified_diff(*lines, "kafka", "barnabas", lineterm="", n=4)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
