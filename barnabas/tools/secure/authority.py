"""A certificate authority of one broker: its certificate, and the ones that it signs for the broker and for clients.

Keys are of the curve P-256, which every client has. Certificates have the extensions that strict verifiers
require: key usages, and the identifiers of the keys (RFC 5280).
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Iterable
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from barnabas.tools.secure.errors import SecureError

CA_DAYS: Final = 3650
CERTIFICATE_DAYS: Final = 397
"""How long a certificate of the broker or of a client lasts: clients refuse longer ones on some systems."""
_EARLY: Final = dt.timedelta(hours=1)
"""Certificates are valid from that long before now, for machines whose clock is slow."""


class Authority:
    """A key that signs certificates, and its own certificate."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._key = key
        self._certificate = certificate

    @classmethod
    def new(cls, name: str) -> Authority:
        """A new authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _named(name)
        unsigned = _unsigned(subject, subject, key.public_key(), CA_DAYS)
        unsigned = unsigned.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        unsigned = unsigned.add_extension(_usage(signs_certificates=True), critical=True)
        return cls(key, unsigned.sign(key, hashes.SHA256()))

    @classmethod
    def load(cls, key: bytes, certificate: bytes) -> Authority:
        """An authority from its PEM texts. `SecureError` if they cannot be read, or do not belong together."""
        try:
            private_key, own = load_pem_private_key(key, None), x509.load_pem_x509_certificate(certificate)
        except (ValueError, TypeError):
            raise SecureError("ca.key and ca.pem cannot be read") from None
        if not isinstance(private_key, ec.EllipticCurvePrivateKey) or private_key.public_key() != own.public_key():
            raise SecureError("ca.key is not the key of ca.pem")
        return cls(private_key, own)

    @property
    def pem(self) -> str:
        """The certificate, which clients trust."""
        return self._certificate.public_bytes(Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        """The private key."""
        return _key_pem(self._key)

    def broker(self, name: str, hosts: Iterable[str]) -> str:
        """A new key and its certificate for a broker with these host names and addresses, as PEM."""
        return self._signed(_named(name), ExtendedKeyUsageOID.SERVER_AUTH, hosts)

    def client(self, name: str) -> str:
        """A new key and its certificate for a client, as PEM."""
        return self._signed(_named(name), ExtendedKeyUsageOID.CLIENT_AUTH, ())

    def again(self, old: x509.Certificate) -> str:
        """A new key and certificate for the subject and the names of another certificate of a broker, as PEM."""
        return self._signed(old.subject, ExtendedKeyUsageOID.SERVER_AUTH, hosts_of(old))

    @staticmethod
    def is_issuer(ca: bytes, certificate: x509.Certificate) -> bool:
        """Whether the CA of this PEM text has signed a certificate. `SecureError` if it cannot be read."""
        issuer = certificates_in(ca, "ca.pem")[0]
        try:
            certificate.verify_directly_issued_by(issuer)
        except (ValueError, TypeError, InvalidSignature):
            return False
        return True

    def _signed(self, subject: x509.Name, purpose: x509.ObjectIdentifier, hosts: Iterable[str]) -> str:
        key = ec.generate_private_key(ec.SECP256R1())
        unsigned = _unsigned(subject, self._certificate.subject, key.public_key(), CERTIFICATE_DAYS)
        unsigned = unsigned.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        unsigned = unsigned.add_extension(_usage(signs_certificates=False), critical=True)
        unsigned = unsigned.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        unsigned = unsigned.add_extension(identifier, critical=False)
        names = [_host(host) for host in dict.fromkeys(hosts)]
        if names:
            unsigned = unsigned.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = unsigned.sign(self._key, hashes.SHA256())
        return _key_pem(key) + certificate.public_bytes(Encoding.PEM).decode()


def hosts_of(certificate: x509.Certificate) -> list[str]:
    """The host names and addresses of a certificate."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [str(name) for kind in (x509.DNSName, x509.IPAddress) for name in names.get_values_for_type(kind)]


def certificates_in(data: bytes, where: str) -> list[x509.Certificate]:
    """The certificates of a PEM text. `SecureError` if there are none, or one cannot be read."""
    try:
        return x509.load_pem_x509_certificates(data)
    except ValueError:
        raise SecureError(f"{where} has no certificate in PEM that can be read") from None


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        if not text.isascii():
            raise SecureError(f"{text!r} cannot be a name in a certificate: it must be ASCII") from None
        return x509.DNSName(text)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLY)
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
