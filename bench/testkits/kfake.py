"""kfake of franz-go: a fake cluster for tests in Go.

Its users have it in the process of their tests. Here it is a program (`kfake-server/main.go`) that opens a cluster for
each line of its input and answers with the address, so that the same client measures it.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import psutil

from bench import secured
from bench.testkits import listeners
from bench.testkits.product import Place, Product, Setup, Test, family
from compat import go_program

FOLDER = Path(__file__).resolve().parent / "kfake-server"


class Kfake(Product):
    """The program; cluster 0 is that of `start`."""

    name, title = "kfake", "kfake (franz-go)"
    isolation = "a new cluster"

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        self._process: subprocess.Popen[str] | None = None

    @classmethod
    def missing(cls) -> str:
        return "" if go_program.has_go() else "Go 1.21 or later is not installed"

    @classmethod
    def version(cls) -> str:
        found = re.search(r"franz-go/pkg/kfake (\S+)", (FOLDER / "go.mod").read_text())
        assert found is not None, "go.mod does not name it"
        return found[1]

    @classmethod
    def prepare(cls) -> None:
        go_program.built(FOLDER)

    def start(self, setup: Setup = Setup.USUAL, keys: Mapping[str, str] | None = None) -> Place:
        self._process = subprocess.Popen(
            [str(go_program.built(FOLDER))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        options: dict[str, object] = {"configs": dict(keys or {}), "auto": setup is not Setup.NO_AUTO_CREATION}
        if setup is Setup.TLS:
            key_store, ca = listeners.certificate(self._stack)
            return listeners.tls_place(self._ask(options | {"tls": str(key_store)}), ca)
        if setup is Setup.USUAL or setup is Setup.NO_AUTO_CREATION:
            return Place(self._ask(options))
        log_in = options | {"user": secured.USER, "password": secured.PASSWORD, "acls": setup is Setup.AUTHORIZER}
        place = listeners.log_in_place(self._ask(log_in))
        if setup is Setup.LOG_IN:
            return place
        return _with_user(place)

    def _ask(self, options: Mapping[str, object]) -> str:
        """Open a cluster; its address."""
        return self._say({"open": options})

    def _say(self, line: Mapping[str, object]) -> str:
        process = self._process
        assert process is not None, "not started"
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(line) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline().strip()
        assert answer, "the program of kfake has ended"
        return answer

    def begin(self) -> Test:
        return Test(Place(self._ask({"configs": {}, "auto": True})), "orders", "group")

    def end(self, test: Test) -> None:
        self._say({"close": test.place.bootstrap})

    def processes(self) -> list[psutil.Process]:
        assert self._process is not None, "not started"
        return family(self._process.pid)

    def stop(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()  # its end
            self._process.wait(10)
        self._stack.close()


def _with_user(place: Place) -> Place:
    """The same with an ordinary user as the client: its administrator may do everything."""
    from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

    admin = AdminClient({"bootstrap.servers": place.bootstrap, **place.client})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    admin.alter_user_scram_credentials([UserScramCredentialUpsertion("user", info, b"user-secret")])["user"].result(20)
    user = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "user", "sasl.password": "user-secret"}
    return Place(place.bootstrap, admin=place.client, client={**place.client, **user}, principal="User:user")
