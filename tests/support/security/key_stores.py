"""Certificates for tests: a CA, and keys that it signs, as PEM files and PKCS12 stores."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

DAY = dt.timedelta(days=1)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Identity:
    """A private key with its certificate."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate, ca: x509.Certificate) -> None:
        self.key = key
        self.certificate = certificate
        self.ca = ca

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def key_pem(self, password: str | None = None) -> str:
        cipher = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, cipher).decode()

    def pem_file(self, path: Path, password: str | None = None) -> Path:
        path.write_text(self.key_pem(password) + self.certificate_pem)
        return path

    def pkcs12_file(self, path: Path, password: str) -> Path:
        cipher = BestAvailableEncryption(password.encode())
        path.write_bytes(pkcs12.serialize_key_and_certificates(b"own", self.key, self.certificate, [self.ca], cipher))
        return path


class Authority:
    """A CA that signs certificates."""

    def __init__(self, name: str = "tests") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(f"CA of {name}")
        unsigned = self._unsigned(self._name, self._key.public_key(), DAY)
        unsigned = unsigned.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.certificate = unsigned.sign(self._key, hashes.SHA256())

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def pem_file(self, path: Path) -> Path:
        path.write_text(self.pem)
        return path

    def pkcs12_file(self, path: Path, password: str) -> Path:
        """A trust store."""
        cipher = BestAvailableEncryption(password.encode())
        path.write_bytes(pkcs12.serialize_key_and_certificates(None, None, None, [self.certificate], cipher))
        return path

    def sign(self, name: str, *hosts: str, lasts: dt.timedelta = DAY) -> Identity:
        """A key for `name`, with host names or addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [
            x509.IPAddress(ipaddress.ip_address(host)) if host[0].isdigit() else x509.DNSName(host) for host in hosts
        ]
        unsigned = self._unsigned(_name(name), key.public_key(), lasts)
        if names:
            unsigned = unsigned.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return Identity(key, unsigned.sign(self._key, hashes.SHA256()), self.certificate)

    def _unsigned(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, lasts: dt.timedelta
    ) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(min(now, now + lasts) - DAY)
            .not_valid_after(now + lasts)
        )
