"""mockafka-py: classes in place of confluent-kafka's, over a dictionary. There is no broker and no protocol."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from importlib.util import find_spec

from bench.testkits.product import Place, Product, Setup, Test, UnsupportedError

PACKAGE = "mockafka-py"


class MockafkaPy(Product):
    """The dictionary."""

    name, title = "mockafka", "mockafka-py"
    isolation = "the store is emptied"
    in_process = True

    @classmethod
    def missing(cls) -> str:
        return "" if find_spec("mockafka") else f"{PACKAGE} is not installed: pip install {PACKAGE}"

    @classmethod
    def version(cls) -> str:
        return metadata.version(PACKAGE)

    @classmethod
    def prepare(cls) -> None:
        pass

    def start(self, setup: Setup = Setup.USUAL, keys: Mapping[str, str] | None = None) -> Place:  # noqa: ARG002 - it has no keys
        if setup is not Setup.USUAL:
            raise UnsupportedError("it has no configuration")
        self.begin()
        return Place("", library="mockafka")

    def begin(self) -> Test:
        from mockafka import FakeAdminClientImpl
        from mockafka.admin_client import NewTopic

        FakeAdminClientImpl(clean=True).create_topics([NewTopic("orders", 1)])
        return Test(Place("", library="mockafka"), "orders", "group")

    def stop(self) -> None:
        pass
