"""Real clients with SASL on a listener without it: they report the error without delay."""

from __future__ import annotations

import subprocess
import sys

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

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


KAFKA_PYTHON = """
import logging, sys
logging.basicConfig(level=logging.INFO)
from kafka import KafkaProducer
from kafka.errors import KafkaTimeoutError
try:
    KafkaProducer(
        bootstrap_servers=sys.argv[1],
        bootstrap_timeout_ms=500,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="user",
        sasl_plain_password="password",
    )
except KafkaTimeoutError:
    sys.exit(3)
"""
"""In a process of its own, because kafka-python does not close the sockets of a producer that it could not create."""


def test_kafka_python_reports_illegal_sasl_state(broker) -> None:
    """It logs the response and reconnects until its own timeout."""
    pytest.importorskip("kafka")
    command = [sys.executable, "-c", KAFKA_PYTHON, broker.bootstrap]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 3, done.stderr
    assert "SaslHandshake failed: IllegalSaslStateError" in done.stderr
