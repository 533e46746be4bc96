"""Real clients with SASL on a listener without it: they report the error without delay."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

kafka = pytest.importorskip("kafka")  # importorskip, because the import warns about deprecated features
from kafka import KafkaProducer  # noqa: E402
from kafka.errors import KafkaTimeoutError  # noqa: E402

SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "user",
    "sasl.password": "password",
}
WAIT_S = 60.0


def test_librdkafka_reports_a_failed_authentication(broker) -> None:
    errors: list[KafkaError] = []
    client = AdminClient({"bootstrap.servers": broker.bootstrap, "error_cb": errors.append, **SASL})
    while not any(error.code() == KafkaError._AUTHENTICATION for error in errors):
        assert client.poll(WAIT_S) > 0, f"no authentication error within {WAIT_S} s, only {errors}"
    (reported, *_) = [str(error) for error in errors if error.code() == KafkaError._AUTHENTICATION]
    assert "handshake failed" in reported


def test_kafka_python_reports_illegal_sasl_state(broker, caplog) -> None:
    """It logs the response and reconnects until its own timeout."""
    with pytest.raises(KafkaTimeoutError):
        KafkaProducer(
            bootstrap_servers=broker.bootstrap,
            bootstrap_timeout_ms=500,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username="user",
            sasl_plain_password="password",
        )
    assert "SaslHandshake failed: IllegalSaslStateError" in caplog.text
