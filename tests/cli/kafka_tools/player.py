"""Runs the commands of a transcript against a broker of their own; commands in `secured/` against a secured one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from tests.cli.kafka_tools.steps import Preparation
from tests.support import transcript
from tests.support.processes.secured import Secured
from tests.support.processes.server import BarnabasServer, Server

SECURED = "secured/"
ADMIN_LOGIN = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="admin-secret";'
)
Run = Callable[[list[str], str], transcript.Output]


def play(name: str, run: Run, folder: Path, secured: Secured | None = None) -> str:
    """The transcript `name` with the output that its commands print now.

    Transcripts in `secured/` need a running broker; each creates other things on it, so that all can share one.
    """
    (folder / "tmp").mkdir()
    if secured is not None:
        return _play(name, run, folder, secured.server, _secured_values(secured, folder / "tmp"))
    with BarnabasServer(folder / "data") as server:
        return _play(name, run, folder, server, {})


def secured_kafka(folder: Path) -> Iterator[Secured]:
    """A node of Apache Kafka for the transcripts of `secured/`, as long as the iterator is open."""
    secured = Secured(folder, "kafka")
    with secured.server:
        yield secured


def _play(name: str, run: Run, folder: Path, server: Server, values: dict[str, str]) -> str:
    # A file below TMP is shown as that, not by its own name: the first that fits is taken.
    values = {"TMP": str(folder / "tmp"), **values, "BROKER": server.bootstrap, "DIR": str(server.data_dir)}
    preparation = Preparation(server.administration.librdkafka(), folder / "tmp")
    played = []
    try:
        for step in transcript.read(transcript.FOLDER / f"{name}.txt"):
            new = transcript.Step(step.line)
            if step.kind == "%":
                preparation.run(transcript.fill(step.words, values))
            elif step.kind == "$":
                output = run(transcript.fill(step.words, values), step.stdin)
                values |= transcript.secrets(output)
                if name.startswith(SECURED):
                    preparation.settle()
                new.output = transcript.normal(output, step, values)
            played.append(new)
    finally:
        preparation.close()
    return transcript.text_of(played)


def _secured_values(secured: Secured, folder: Path) -> dict[str, str]:
    """The listener with TLS and SASL, and two client.properties: ADMIN is of a super user of it, EMPTY has none."""
    login = {"sasl_mechanism": "PLAIN", "sasl_jaas_config": ADMIN_LOGIN, "ssl_truststore_type": "PEM"}
    properties = secured.properties("SASL_SSL", **login)
    files = {"ADMIN": folder / "admin.properties", "EMPTY": folder / "empty.properties"}
    files["ADMIN"].write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    files["EMPTY"].write_text("")
    return {"SECURED": secured.address("SASL_SSL")} | {name: str(path) for name, path in files.items()}
