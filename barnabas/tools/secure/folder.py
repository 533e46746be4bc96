"""The folder of `--secure`: DIR-secure beside the data directory DIR, with mode 0700 and files of mode 0600.

It is not in the data directory, where Kafka takes every folder for a partition. The key of the CA is written before
its certificate, and files are replaced as a whole, so that after a crash the existing files can be used.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from barnabas.tools.secure.authority import Authority, certificates_in, hosts_of
from barnabas.tools.secure.errors import SecureError

BROKER_NAME: Final = "barnabas"
"""The common name of the broker's certificate."""
RENEWED_DAYS: Final = 30
"""A start renews a certificate that ends within so many days."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class SecureFolder:
    """The files of one broker."""

    def __init__(self, data_dir: str) -> None:
        data = Path(os.path.realpath(data_dir))
        self.path: Final = data.with_name(f"{data.name}-secure")
        self.ca: Final = self.path / "ca.pem"
        self.ca_key: Final = self.path / "ca.key"
        self.server: Final = self.path / "server.pem"
        self.properties: Final = self.path / "client.properties"
        self.clients: Final = self.path / "clients.txt"

    def prepare(self, hosts: Iterable[str]) -> None:
        """Make the missing files: the CA, and a certificate of the broker with these names. `SecureError`."""
        names = list(dict.fromkeys(hosts))
        with _errors():
            self.path.mkdir(0o700, parents=True, exist_ok=True)
            self.path.chmod(0o700)  # also one that was there
            ca, server = _content(self.ca), _content(self.server)
            if ca is None:
                authority = Authority.new(f"Barnabas CA of {os.uname().nodename}"[:64])
                self.write(self.ca_key, authority.key_pem)
                self.write(self.ca, authority.pem)
                ca = authority.pem.encode()
            if server is not None:
                old = certificates_in(server, str(self.server))[0]
                ends_soon = old.not_valid_after_utc - dt.datetime.now(dt.UTC) < dt.timedelta(days=RENEWED_DAYS)
                trusted = Authority.is_issuer(ca, old)
                if trusted and not ends_soon and set(names) <= set(hosts_of(old)):
                    return
                names = list(dict.fromkeys([*hosts_of(old), *names]))
            self.write(self.server, self._authority().broker(BROKER_NAME, names))

    def renew(self) -> None:
        """Replace the broker's certificate by a new one with the same subject and names. `SecureError`."""
        self.require()
        with _errors():
            server = _content(self.server)
            if server is None:
                raise SecureError(f"there is no {self.server}: 'barnabas serve --secure' makes it")
            old = certificates_in(server, str(self.server))[0]
            self.write(self.server, self._authority().again(old))

    def client(self, name: str) -> Path:
        """Make a key and a certificate for a client; the file that has both. `SecureError`."""
        if not _NAME.fullmatch(name):
            raise SecureError(f"a client's name must be letters, digits, '.', '_' and '-', not {name!r}")
        self.require()
        path = self.path / f"client-{name}.pem"
        with _errors():
            self.write(path, self._authority().client(name))
        return path

    def certificates(self) -> list[Path]:
        """The files with certificates: of the CA, the broker and the clients. `SecureError`."""
        self.require()
        with _errors():
            return [self.ca, self.server, *sorted(self.path.glob("client-*.pem"))]

    def require(self) -> None:
        """`SecureError` unless `--secure` has made the folder."""
        with _errors():
            if _content(self.ca) is None:
                raise SecureError(f"there is no {self.ca}: 'barnabas serve --secure' makes it")

    def read(self, path: Path) -> str | None:
        """A file, None if there is none. `SecureError`."""
        with _errors():
            content = _content(path)
        try:
            return None if content is None else content.decode()
        except UnicodeDecodeError:
            raise SecureError(f"{path} is no text in UTF-8") from None

    def write(self, path: Path, text: str) -> None:
        """Replace a file, or make it; only its owner can read it, from the first moment on. `SecureError`.

        If that fails the file is as it was before.
        """
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        with _errors():
            temporary.unlink(missing_ok=True)  # of a crash
            try:
                _write_private(temporary, text.encode())
                temporary.replace(path)
            except OSError as error:
                error.filename = str(path)  # errors of a descriptor name no file
                with suppress(OSError):
                    temporary.unlink(missing_ok=True)
                raise

    def _authority(self) -> Authority:
        key, certificate = _content(self.ca_key), _content(self.ca)
        if key is None or certificate is None:
            missing = self.ca_key if key is None else self.ca
            raise SecureError(f"{missing} is needed to sign a certificate, and is not there")
        return Authority.load(key, certificate)


def read_file(path: Path) -> bytes:
    """A file that has to be there. `SecureError`."""
    with _errors():
        content = _content(path)
    if content is None:
        raise SecureError(f"there is no {path}")
    return content


def _content(path: Path) -> bytes | None:
    """The content of a file, None only if there is none: one that cannot be read now must not be made again."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        error.filename = str(path)
        raise


def _write_private(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        remaining = memoryview(data)
        while remaining:
            remaining = remaining[os.write(descriptor, remaining) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _errors() -> Iterator[None]:
    """Turn an OSError into a SecureError with one sentence."""
    try:
        yield
    except OSError as error:
        raise SecureError(f"Cannot use {error.filename}: {error.strerror}") from error
