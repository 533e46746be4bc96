"""Runs the commands of a transcript against a broker of their own; those of `secured/` against a secured one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.servers import BarnabasServer
from tests.cli.kafka_tools import transcript
from tests.cli.kafka_tools.steps import Preparation
from tests.client_security.secured import Secured

SECURED = "secured/"
ADMIN_LOGIN = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="admin-secret";'
)
Run = Callable[[list[str], str], transcript.Output]


def play(name: str, run: Run, folder: Path) -> str:
    """The transcript `name` with the output that its commands print now."""
    (folder / "tmp").mkdir()
    values = {"TMP": str(folder / "tmp")}
    if name.startswith(SECURED):
        secured = Secured(folder, "kafka")
        values |= {"SECURED": secured.address("SASL_SSL"), **_client_files(secured, folder / "tmp")}
        server = secured.server
    else:
        server = BarnabasServer(folder / "data")
    server.start()
    values |= {"BROKER": server.bootstrap, "DIR": str(server.data_dir)}
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
        server.stop()
    return transcript.text_of(played)


def _client_files(secured: Secured, folder: Path) -> dict[str, str]:
    """Files of a client's properties: ADMIN is a super user of the listener with TLS and SASL, EMPTY has none."""
    login = {"sasl_mechanism": "PLAIN", "sasl_jaas_config": ADMIN_LOGIN, "ssl_truststore_type": "PEM"}
    properties = secured.properties("SASL_SSL", **login)
    files = {"ADMIN": folder / "admin.properties", "EMPTY": folder / "empty.properties"}
    files["ADMIN"].write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    files["EMPTY"].write_text("")
    return {name: str(path) for name, path in files.items()}
