"""The folder of `--secure`: DIR-secure beside the data directory DIR, with mode 0700 and files of mode 0600.

It is not in the data directory, where Kafka takes every folder for a partition. The key of the CA is written before
its certificate, and files are replaced as a whole, so that after a crash what is there can be used.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.secure.errors import SecureError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.secure.authority import Authority

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
        """Make what is missing: the CA, and a certificate of the broker with these names. `SecureError`."""
        from barnabas.secure.authority import Authority, certificates_in, hosts_of

        wanted = list(dict.fromkeys(hosts))
        with _errors():
            self.path.mkdir(0o700, parents=True, exist_ok=True)
            self.path.chmod(0o700)  # also one that was there
            if not self.ca.exists():
                made = Authority.new(f"Barnabas CA of {os.uname().nodename}"[:64])
                self.write(self.ca_key, made.key_pem)
                self.write(self.ca, made.pem)
            if self.server.exists():
                old = certificates_in(self.server.read_bytes(), str(self.server))[0]
                ends_soon = old.not_valid_after_utc - dt.datetime.now(dt.UTC) < dt.timedelta(days=RENEWED_DAYS)
                trusted = Authority.is_issuer(self.ca.read_bytes(), old)
                if trusted and not ends_soon and set(wanted) <= set(hosts_of(old)):
                    return
                wanted = list(dict.fromkeys([*hosts_of(old), *wanted]))
            self.write(self.server, self._authority().broker(BROKER_NAME, wanted))

    def renew(self) -> None:
        """Replace the broker's certificate by a new one with the same subject and names. `SecureError`."""
        from barnabas.secure.authority import certificates_in

        self.require()
        with _errors():
            old = certificates_in(self.server.read_bytes(), str(self.server))[0]
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
        if not self.ca.exists():
            raise SecureError(f"there is no {self.ca}: 'barnabas serve --secure' makes it")

    def read(self, path: Path) -> str | None:
        """A file, None if there is none. `SecureError`."""
        with _errors():
            try:
                return path.read_text(encoding="utf-8")
            except FileNotFoundError:
                return None

    def write(self, path: Path, text: str) -> None:
        """Replace a file, or make it; only its owner can read it, from the first moment on."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)

    def _authority(self) -> Authority:
        from barnabas.secure.authority import Authority

        if not self.ca_key.exists():
            raise SecureError(f"{self.ca_key} is needed to sign a certificate, and is not there")
        return Authority.load(self.ca_key.read_bytes(), self.ca.read_bytes())


@contextmanager
def _errors() -> Iterator[None]:
    """An error of the disk is a sentence."""
    try:
        yield
    except OSError as error:
        raise SecureError(f"Cannot use {error.filename}: {error.strerror}") from error
