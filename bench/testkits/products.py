"""All products, in the order of the table."""

from __future__ import annotations

from bench.testkits.apache_kafka import ApacheKafka
from bench.testkits.barnabas_kit import BarnabasKit
from bench.testkits.embedded_kafka import EmbeddedKafka
from bench.testkits.kfake import Kfake
from bench.testkits.librdkafka_mock import LibrdkafkaMock
from bench.testkits.mockafka_py import MockafkaPy
from bench.testkits.product import Product

PRODUCTS: dict[str, type[Product]] = {
    one.name: one for one in (BarnabasKit, ApacheKafka, EmbeddedKafka, Kfake, LibrdkafkaMock, MockafkaPy)
}
"""By their names on the command line."""
