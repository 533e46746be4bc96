"""`barnabas cert`: its output, and certificates that change while the broker runs."""

from __future__ import annotations

import ssl
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.secure.serving import SecureServe
from tests.support.processes.commands import run_command

WAIT_S = 30


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureServe]:
    folder = tmp_path_factory.mktemp("cert")
    with SecureServe(folder, "--set", "listener.name.sasl_ssl.ssl.client.auth=requested") as broker:
        yield broker


def test_show_names_subject_hosts_and_end(serving: SecureServe) -> None:
    rows = run_command("cert", "show", "--data-dir", str(serving.data), "-o", "json").ok().json
    ca, server = rows[:2]
    assert (ca["file"], server["file"]) == ("ca.pem", "server.pem")
    assert server["subject"] == "CN=barnabas"
    assert server["issuer"] == ca["subject"]
    assert {"localhost", "127.0.0.1", "::1"} <= set(server["names"])
    assert server["days_left"] > 300
    table = run_command("cert", "show", str(serving.files / "server.pem")).ok().lines
    assert table[0].split()[:3] == ["FILE", "SUBJECT", "NAMES"]
    assert table[1].split()[:2] == ["server.pem", "CN=barnabas"]
    assert "PRIVATE" not in "".join(table)


def test_a_running_broker_takes_a_renewed_certificate(serving: SecureServe) -> None:
    producer = Producer(serving.python("confluent-kafka"))
    before = serving.certificate()
    run_command("cert", "renew", "--data-dir", str(serving.data)).ok()
    while serving.certificate() == before:
        producer.produce("renewed", b"x")
        assert producer.flush(WAIT_S) == 0
    assert serving.certificate() == ssl.PEM_cert_to_DER_cert(pem_of(serving))
    producer.produce("renewed", b"last")
    assert producer.flush(WAIT_S) == 0
    assert AdminClient(serving.python("confluent-kafka")).list_topics(timeout=WAIT_S).cluster_id


def pem_of(serving: SecureServe) -> str:
    text = (serving.files / "server.pem").read_text()
    return text[text.index("-----BEGIN CERTIFICATE") :]


def test_a_certificate_of_a_client_is_trusted(serving: SecureServe) -> None:
    ran = run_command("cert", "client", "app-1", "--data-dir", str(serving.data)).ok()
    path = serving.files / "client-app-1.pem"
    assert ran.lines == [f"made {path}; its principal is User:CN=app-1 on a listener with SSL"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    own = {"ssl.certificate.location": str(path), "ssl.key.location": str(path)}
    admin = AdminClient(serving.python("confluent-kafka") | own)
    assert admin.list_topics(timeout=WAIT_S).cluster_id
    rows = run_command("cert", "show", "--data-dir", str(serving.data), "-o", "json").ok().json
    assert rows[2]["subject"] == "CN=app-1"


def test_mistakes_are_one_sentence(serving: SecureServe, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("nothing")
    for arguments, sentence in (
        (["show"], "give either files or --data-dir DIR"),
        (["show", str(nothing)], "has no certificate in PEM"),
        (["show", str(tmp_path / "missing")], "does not exist"),
        (["show", "--data-dir", str(tmp_path / "plain")], "'barnabas serve --secure' makes it"),
        (["renew", "--data-dir", str(tmp_path / "plain")], "'barnabas serve --secure' makes it"),
        (["client", "../x", "--data-dir", str(serving.data)], "a client's name must be letters"),
    ):
        ran = run_command("cert", *arguments)
        assert (ran.code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1), ran.stderr
        assert sentence in ran.stderr


def test_the_key_of_the_ca_may_be_kept_elsewhere(tmp_path: Path) -> None:
    with SecureServe(tmp_path) as first:
        pass
    (first.files / "ca.key").rename(tmp_path / "ca.key")
    with SecureServe(tmp_path) as second:
        second.certificate()
        ran = run_command("cert", "renew", "--data-dir", str(second.data))
        assert ran.code == 2
        assert "is needed to sign a certificate" in ran.stderr
