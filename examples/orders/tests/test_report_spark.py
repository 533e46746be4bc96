"""A Spark job over the topic: read with the connector, compared with what the test wrote."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.testing import Cluster

pytest.importorskip("pyspark")


@pytest.mark.kafka(topics={"orders": 2})
def test_the_sum_of_all_orders(kafka: Cluster, kafka_options: dict[str, str], kafka_spark: Any) -> None:
    for number in range(4):
        kafka.topic("orders").produce(f'{{"id": {number}, "amount": {number * 10}}}', key=str(number))
    orders = kafka_spark.read.format("kafka").options(**kafka_options).option("subscribe", "orders").load()
    rows = orders.selectExpr("get_json_object(CAST(value AS STRING), '$.amount') AS amount")
    assert rows.selectExpr("sum(CAST(amount AS INT)) AS total").collect()[0].total == 60
