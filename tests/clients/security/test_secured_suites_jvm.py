"""Parts of the suites on the JVM over secured listeners, with the certificate replaced meanwhile.

`compat/run NAME --secure PROTOCOL[/MECHANISM]` runs a whole suite, which takes minutes.
"""

from __future__ import annotations

import shutil

import pytest

from compat import suite
from tests.clients.security.secured_suites import run
from tests.support.processes.security import combination

pytestmark = [
    pytest.mark.soak,
    pytest.mark.jvm,
    pytest.mark.timeout(280),
    pytest.mark.skipif(not shutil.which("javac") or not shutil.which("mvn"), reason="needs a JDK and Maven"),
]
PARTS = {
    "java": (
        "SASL_SSL/OAUTHBEARER",
        ["roundtrip_zstd", "admin_topics", "transaction_commit", "share_explicit", "consumer_protocol_pattern"],
    ),
    "kafka_streams": ("SASL_SSL/SCRAM-SHA-512", ["test_word_count[streams-exactly_once_v2]"]),
    "spark": (
        "SASL_SSL/SCRAM-SHA-256",
        ["test_batch_read_by_offsets", "test_sink_creates_its_topic", "test_stream_from_topic_to_topic"],
    ),
    "kafka-tools": (
        "SSL/mTLS",
        [
            "test_groups_describe_offsets",
            "test_transactions_describe_producers",
            "test_verifiable_producer_and_consumer",
        ],
    ),
}
"""A listener, and the tests that use it. Parameters of the tests are matched as words."""


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_a_suite(name: str) -> None:
    if name == "spark":
        pytest.importorskip("pyspark")
    secure, tests = PARTS[name]
    chosen = " or ".join(test.replace("[", " and ").removesuffix("]") for test in tests)
    done = run(name, "--secure", secure, "--rotate", "1", "-k", chosen, "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{name}: {len(tests)} of {len(suite.allowed(name))} listed tests passed" in done.stdout
    assert (f"{name}: certificate rotated " in done.stdout) == combination(secure).has_tls
