"""Mutated frames on a connection that is not authenticated: refused, or answered by the few APIs that are served."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire.errors import ProtocolError
from barnabas.wire.frame import encode_request
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.security.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from barnabas.wire.principal import ANONYMOUS
from barnabas.wire.types import chunk_bytes
from tests.support.memory.secure_broker import SecureBroker, scram_first

SEEDS = [
    (ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4),
    (SaslHandshakeRequest(mechanism="PLAIN"), 1),
    (SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1),
    (SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), 0),
    (SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2),
    (SaslAuthenticateRequest(auth_bytes=scram_first("alice")), 1),
    (SaslAuthenticateRequest(auth_bytes=b"c=biws,r=fykox,p=AAAA"), 2),
    (MetadataRequest(topics=[]), 12),
    (ProduceRequest(), 9),
]
FRAMES = [b"".join(map(chunk_bytes, encode_request(request, version, 1, "c"))) for request, version in SEEDS]


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    broker = SecureBroker(tmp_path_factory.mktemp("fuzz") / "data")
    broker.add_scram()
    yield broker
    broker.close()


def mutated(frame: bytes, at: int, byte: int, cut: int) -> bytes:
    """A frame with another byte, and fewer of them; its size is right in most cases."""
    changed = bytearray(frame)
    changed[at % len(changed)] = byte
    body = bytes(changed[4 : len(changed) - cut % 4])
    return len(body).to_bytes(4, "big") + body


MUTATED = st.builds(mutated, st.sampled_from(FRAMES), st.integers(0, 200), st.integers(0, 255), st.integers(0, 40))


@given(st.lists(st.sampled_from(FRAMES) | MUTATED | st.binary(max_size=60), min_size=1, max_size=8))
def test_nothing_that_is_sent_without_a_password_lets_a_client_in(secure: SecureBroker, frames: list[bytes]) -> None:
    errors: list[logging.LogRecord] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = errors.append  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    client = secure.dial()
    try:
        for frame in frames:
            client.connection.receive(memoryview(bytearray(frame)), secure.clock.now)
            client.connection.out.clear()
            client.connection.out_bytes = 0
            secure.advance(0.1)
            if client.connection.is_closing:
                break
    except ProtocolError:
        pass
    finally:
        logging.getLogger().removeHandler(handler)
        secure.clients.remove(client)
        client.connection.close()
    assert client.connection.principal == ANONYMOUS
    assert client.connection.authenticator is not None
    assert [record.getMessage() for record in errors] == []
