"""Key stores and trust stores: PEM in files and inline, PKCS12, and the certificates in them.

Only ConfigError; ValueError for a certificate that is none. The name of a certificate can be written into a log.
"""

from __future__ import annotations

import ssl
import warnings
from collections.abc import Iterator
from functools import cache

from barnabas.broker.security.certificate import parse_certificate, subject_name
from barnabas.broker.security.stores import KeyStoreSettings, TrustStoreSettings, load_key_store, load_trust_store
from barnabas.wire.configdef import ConfigError
from barnabas.wire.key_stores import pem_entries, pkcs12_entries, to_der
from tests.fuzz.targets import Input, is_sayable

MAX_BYTES = 4096
PASSWORD = "store-pass"


def check(data: bytes) -> None:
    """The first byte: a key store, a trust store, a certificate, or PKCS12."""
    source = Input(data)
    kind = source.number(4)
    try:
        if kind == 0:
            text = source.rest.decode("utf-8", "replace")
            load_key_store(KeyStoreSettings("PEM", None, None, text, text, PASSWORD))
        elif kind == 1:
            text = source.rest.decode("utf-8", "replace")
            _written_again(text)
            load_trust_store(TrustStoreSettings("PEM", None, None, text))
        elif kind == 2:
            _certificate(source.rest)
        else:
            _pkcs12(source.rest)
    except ConfigError as error:
        is_sayable(str(error))


def _written_again(text: str) -> None:
    for block in pem_entries(text).certificates:
        try:
            written = ssl.DER_cert_to_PEM_cert(to_der(block))
        except ValueError as error:
            is_sayable(str(error))
        else:
            assert pem_entries(written).certificates == [written]


def _certificate(data: bytes) -> None:
    try:
        certificate = parse_certificate(data)
    except ValueError:
        return
    is_sayable(subject_name(certificate))


def _pkcs12(data: bytes) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the library says that it reads BER where DER is expected
            pkcs12_entries(data, PASSWORD)
    except ValueError as error:
        is_sayable(str(error))


@cache
def _signed():
    from tests.support.security.certificates import Authority

    return Authority("ca").sign("localhost")


def seeds() -> Iterator[bytes]:
    """Stores of a new authority."""
    signed = _signed()
    for text in (signed.pem(), signed.pem(PASSWORD), signed.pem().replace("\n", " ")):
        yield b"\0" + text.encode()
    yield b"\x01" + signed.chain_pem.encode()
    yield b"\x02" + signed.der
    yield b"\x03" + signed.pkcs12(PASSWORD)
