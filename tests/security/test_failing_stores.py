"""Each operation on key stores, trust stores and JWKS documents fails once, at the start and later."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path

import pytest

from barnabas.broker.config.load import load
from barnabas.broker.event_loop.loop import Loop
from barnabas.broker.event_loop.steps import StepRunner
from barnabas.broker.security.jwks import MIN_REFRESH_S
from barnabas.broker.security.tls import Tls
from barnabas.broker.security.token_file import CHECK_S, TokenFile
from barnabas.wire.configdef import ConfigError
from tests.security.tls_node import CA, SERVER, InPlace, TlsNode
from tests.support.cases import for_each
from tests.support.disks.failing_calls import FailingCalls
from tests.support.memory.secure_broker import SecureBroker
from tests.support.security.token_checks import KEYS, URL, accepted, refused
from tests.support.security.token_issuer import jwk, signed, write_jwks

CODES = [errno.EIO, errno.EMFILE]


def stores(path: Path, kind: str) -> dict[str, str]:
    """Settings of a key store and a trust store in files."""
    own, trust = path / "own", path / "trust.pem"
    own.write_bytes(SERVER.pem().encode() if kind == "PEM" else SERVER.pkcs12("secret"))
    CA.write(trust)
    keys = {
        "listeners": "SSL://localhost:9093",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.type": kind,
        "ssl.keystore.location": str(own),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trust),
    }
    return keys if kind == "PEM" else keys | {"ssl.keystore.password": "secret"}


@for_each("code", CODES)
@for_each("kind", ["PEM", "PKCS12"])
def test_a_start_with_a_failure_is_a_sentence(tmp_path: Path, kind: str, code: int) -> None:
    config = load(stores(tmp_path, kind), {}, None)
    with FailingCalls(tmp_path) as files:
        Tls(config)
    assert {"read own", "read trust.pem", "memfd_create"} <= set(files.counted)
    needed = 0
    for number, operation in enumerate(files.counted, 1):
        with FailingCalls(tmp_path, number, code):
            if operation.startswith("stat "):
                Tls(config)  # a file is looked at again later
                continue
            with pytest.raises(ConfigError, match=os.strerror(code)) as refused_start:
                Tls(config)
        needed += 1
        assert "\n" not in str(refused_start.value)
        assert "secret" not in str(refused_start.value)
    assert needed >= 6


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("store", ["own", "trust"])
def test_a_reload_with_a_failure_keeps_the_old_certificate_and_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, store: str, code: int
) -> None:
    number = 0
    while True:
        number += 1
        folder = tmp_path / str(number)
        folder.mkdir()
        node = TlsNode(folder)
        renewed = CA.sign("server")
        renewed.write(node.key_store)
        if store == "trust":
            node.trust_store.write_text(CA.pem + "\n")
        caplog.clear()
        with FailingCalls(folder, number, code) as files:
            node.wait()
        if not files.has_failed:
            break
        errors = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert all(record.exc_info is None for record in errors)
        if files.counted[-1].startswith("stat "):
            assert errors == []
        else:
            assert [os.strerror(code) in record.getMessage() for record in errors] == [True], files.counted[-1]
            assert node.shown == SERVER.der
        node.wait()
        assert node.shown == renewed.der
    assert number > 6


def test_a_failure_that_stays_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    node = TlsNode(tmp_path)
    renewed = CA.sign("server")
    renewed.write(node.key_store)
    for _ in range(3):
        with FailingCalls(tmp_path, 3) as files:
            node.wait()
        assert files.has_failed
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert "the old ones stay: " in line
    node.wait()
    assert node.shown == renewed.der


@pytest.mark.parametrize("code", CODES)
def test_a_jwks_file_may_fail_at_the_start_and_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    folder = tmp_path / "keys"
    folder.mkdir()
    sets = {**KEYS, URL: write_jwks(folder / "jwks.json", jwk("RSA", "one"))}
    for number in (1, 2):
        with FailingCalls(folder, number, code) as files, pytest.raises(ConfigError, match=os.strerror(code)):
            SecureBroker(tmp_path / f"not-started-{number}", sets)
        assert files.has_failed
    secure = SecureBroker(tmp_path / "data", sets)
    write_jwks(folder / "jwks.json", jwk("RSA", "two", 1))
    for number in (1, 2):
        caplog.clear()
        with FailingCalls(folder, number, code) as files:
            refused(secure, signed(key_id="two", number=1))
            accepted(secure, signed())
        assert files.has_failed
        (line,) = [
            record for record in caplog.records if "keys that verify tokens cannot be read" in record.getMessage()
        ]
        assert line.exc_info is None
        secure.advance(MIN_REFRESH_S)
    refused(secure, signed(key_id="two", number=1))
    accepted(secure, signed(key_id="two", number=1))
    secure.close()


@pytest.mark.parametrize("code", CODES)
def test_the_token_of_a_node_may_fail_at_the_start_and_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    path, now = tmp_path / "token", [0.0]
    path.write_text("first\n")
    loop = Loop(lambda: now[0], lambda: 0)
    runner = StepRunner(loop, InPlace())
    for number in (1, 2):
        with FailingCalls(tmp_path, number, code), pytest.raises(ConfigError, match=os.strerror(code)):
            TokenFile(str(path), loop, runner)
    token = TokenFile(str(path), loop, runner)

    def look() -> str:
        now[0] += CHECK_S
        for _ in range(5):
            loop.timers.fire(now[0])
        return token.current()

    path.write_text("second")
    for _ in range(2):
        with FailingCalls(tmp_path, 2, code):
            assert look() == "first"
    assert [os.strerror(code) in record.getMessage() for record in caplog.records] == [True], "it is told once"
    assert look() == "second"
    for wrong in ("", "two words", "\N{LATIN SMALL LETTER E WITH ACUTE}", "x" * 70_000):
        path.write_text(wrong)
        assert look() == "second"
    assert "must have one token and nothing else" in caplog.text
