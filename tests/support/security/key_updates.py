"""A client of TLS 1.3 that changes its keys as often as it likes, and asks the server to do the same (RFC 8446).

OpenSSL has no interface for that in Python, so the records are made here, with the secret that it writes for debuggers.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

_APPLICATION_DATA, _HANDSHAKE = 23, 22
_KEY_UPDATE = bytes([24, 0, 0, 1, 1])
"""The message: the server shall change its keys too."""
_SIZES = {"TLS_AES_256_GCM_SHA384": (hashes.SHA384(), 32), "TLS_AES_128_GCM_SHA256": (hashes.SHA256(), 16)}


class KeyChanger:
    """One connection after its handshake."""

    def __init__(self, address: tuple[str, int], authority: str, folder: Path) -> None:
        """`authority` is the PEM of the server certificate's authority; the secret passes through `folder`."""
        context = ssl.create_default_context(cadata=authority)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        secrets = folder / "secrets"
        context.keylog_filename = str(secrets)
        plain = socket.create_connection(address, 20)
        self.socket = socket.socket(fileno=os.dup(plain.fileno()))
        """The socket below TLS."""
        self.tls = context.wrap_socket(plain, server_hostname="localhost")
        self._algorithm, self._key_bytes = _SIZES[self.tls.cipher()[0]]  # type: ignore[index]  # there is one
        lines = [line.split() for line in secrets.read_text().splitlines()]
        (text,) = (words[2] for words in lines if words[0] == "CLIENT_TRAFFIC_SECRET_0")
        secrets.unlink()
        self._secret = bytes.fromhex(text)

    def records(self, count: int) -> bytes:
        """So many changes of keys, each encrypted with the key of the one before it."""
        key_updates = []
        for _ in range(count):
            nonce = self._expand("iv", 12)  # of the first record under a key
            sealed_bytes = len(_KEY_UPDATE) + 1 + 16
            header = struct.pack(">BHH", _APPLICATION_DATA, 0x0303, sealed_bytes)
            cipher = AESGCM(self._expand("key", self._key_bytes))
            key_updates.append(header + cipher.encrypt(nonce, _KEY_UPDATE + bytes([_HANDSHAKE]), header))
            self._secret = self._expand("traffic upd", self._algorithm.digest_size)
        return b"".join(key_updates)

    def _expand(self, label: str, size: int) -> bytes:
        full = b"tls13 " + label.encode()
        info = struct.pack(">HB", size, len(full)) + full + b"\0"
        return HKDFExpand(self._algorithm, size, info).derive(self._secret)

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()
        self.tls.close()
