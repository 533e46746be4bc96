"""Runs the commands of a transcript against a broker of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.servers import BarnabasServer
from tests.cli.kafka_tools import transcript
from tests.cli.kafka_tools.steps import Preparation

Run = Callable[[list[str], str], transcript.Output]


def play(name: str, run: Run, folder: Path) -> str:
    """The transcript `name` with the output that its commands print now."""
    server = BarnabasServer(folder / "data")
    server.start()
    (folder / "tmp").mkdir()
    values = {"BROKER": server.bootstrap, "DIR": str(server.data_dir), "TMP": str(folder / "tmp")}
    preparation = Preparation(server.bootstrap, folder / "tmp")
    played = []
    try:
        for step in transcript.read(transcript.FOLDER / f"{name}.txt"):
            new = transcript.Step(step.line)
            if step.kind == "%":
                preparation.run(transcript.fill(step.words, values))
            elif step.kind == "$":
                output = run(transcript.fill(step.words, values), step.stdin)
                new.output = transcript.normal(output, step, values)
            played.append(new)
    finally:
        preparation.close()
        server.stop()
    return transcript.text_of(played)
