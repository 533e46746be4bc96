"""Certificates for tests: authorities and the certificates that they sign, as PEM and PKCS12."""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
    serialize_key_and_certificates,
)
from cryptography.x509.oid import NameOID

START = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
END = dt.datetime(2120, 1, 1, tzinfo=dt.UTC)
YESTERDAY = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
LOCAL = ("localhost", "127.0.0.1")


def name(common_name: str, organization: str = "Barnabas") -> x509.Name:
    """A distinguished name of two parts."""
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


class Signed:
    """A private key with its certificate and the certificate of its authority."""

    def __init__(
        self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate, authority: x509.Certificate
    ) -> None:
        self.key, self.certificate, self.authority = key, certificate, authority

    @property
    def der(self) -> bytes:
        """The certificate in DER."""
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def chain_pem(self) -> str:
        """The certificate in PEM."""
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def key_pem(self, password: str | None = None) -> str:
        """The private key in PEM, encrypted if there is a password."""
        encryption = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    def pem(self, password: str | None = None) -> str:
        """Key and certificate in PEM."""
        return self.key_pem(password) + self.chain_pem

    def pkcs12(self, password: str) -> bytes:
        """Key, certificate and authority as PKCS12."""
        encryption = BestAvailableEncryption(password.encode())
        return serialize_key_and_certificates(b"kafka", self.key, self.certificate, [self.authority], encryption)

    def write(self, path: Path, password: str | None = None) -> str:
        """Write key and certificate to a file, whose path is returned."""
        path.write_text(self.pem(password))
        return str(path)


class Authority:
    """A certificate authority."""

    def __init__(self, common_name: str = "CA") -> None:
        self._name = name(common_name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(self._name, self._name, self._key.public_key(), END)
        basic = x509.BasicConstraints(ca=True, path_length=None)
        self.certificate = builder.add_extension(basic, critical=True).sign(self._key, hashes.SHA256())

    @property
    def pem(self) -> str:
        """The certificate in PEM."""
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def der(self) -> bytes:
        """The certificate in DER."""
        return self.certificate.public_bytes(Encoding.DER)

    def write(self, path: Path) -> str:
        """Write the certificate to a file, whose path is returned."""
        path.write_text(self.pem)
        return str(path)

    def java_trust_store(self, password: str) -> bytes:
        """A trust store as keytool writes it."""
        entry = PKCS12Certificate(self.certificate, b"ca")
        return serialize_java_truststore([entry], BestAvailableEncryption(password.encode()))

    def trust_store(self, password: str) -> bytes:
        """A trust store in PKCS12 as OpenSSL writes it."""
        encryption = BestAvailableEncryption(password.encode())
        return serialize_key_and_certificates(None, None, None, [self.certificate], encryption)

    def sign(self, subject: str | x509.Name, hosts: Sequence[str] = LOCAL, end: dt.datetime = END) -> Signed:
        """A certificate for a subject and its hosts."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(name(subject) if isinstance(subject, str) else subject, self._name, key.public_key(), end)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(list(map(_host, hosts))), critical=False)
        return Signed(key, builder.sign(self._key, hashes.SHA256()), self.certificate)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, end: dt.datetime
) -> x509.CertificateBuilder:
    serial = x509.random_serial_number()
    named = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).serial_number(serial)
    return named.public_key(key).not_valid_before(START).not_valid_after(end)


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
