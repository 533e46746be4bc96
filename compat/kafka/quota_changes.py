"""Random AlterClientQuotas requests and filters of DescribeClientQuotas, answered by Kafka's classes and by Barnabas.

    python -m compat.kafka.quota_changes 2000       # prints the number of worlds that were equal

Some of the requests are impossible: the error codes are compared too, and the metadata afterwards.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable
from typing import Any

from barnabas.coord.cluster.changes.quota_changes import alter_quotas_steps
from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.metadata_log.replay import replay_record
from barnabas.coord.quotas.filter import QuotaFilter
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    ComponentData,
    DescribeClientQuotasRequest,
    OpData,
)
from barnabas.wire.steps import result_of
from compat.kafka.worlds import Comparison, World

KEYS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
VALUES = (1.0, 2.0, 2.0, 3.0, 0.5, 0.0, -1.0, 1024.0000001, 1e9, 3e9, 1e19, 1e300)


def new_world(random_: random.Random) -> World:
    """A few requests that change few entities, and filters for them."""
    return {
        "requests": [[_entry(random_) for _ in range(random_.randint(1, 4))] for _ in range(random_.randint(1, 6))],
        "filters": [_filter(random_) for _ in range(8)],
    }


def _entry(random_: random.Random) -> World:
    kinds = random_.choice([["user"], ["client-id"], ["ip"], ["user", "client-id"], ["user", "ip"], ["group"], []])
    names = {
        kind: random_.choice(["10.0.0.1", "10.0.0.2", None, ""] if kind == "ip" else ["a", "b", None]) for kind in kinds
    }
    keys = ["connection_creation_rate", *KEYS[:1]] if "ip" in kinds else [*KEYS, "connection_creation_rate"]
    keys = random_.choices(keys, k=random_.randint(1, 3))
    return {
        "entity": names,
        "ops": [{"key": key, "value": random_.choice([None, None, *VALUES])} for key in keys],
    }


def _filter(random_: random.Random) -> World:
    kinds = random_.choices(["user", "client-id", "ip", "group", ""], [8, 8, 4, 1, 1], k=random_.randint(0, 2))
    return {
        "strict": random_.random() < 0.5,
        "components": [
            {"type": kind, "match_type": kind_of, "match": random_.choice(["a", "10.0.0.1"]) if kind_of == 0 else wrong}
            for kind in kinds
            for kind_of, wrong in [(random_.choice([0, 0, 1, 2, 2]), "a" if random_.random() < 0.05 else None)]
        ],
    }


def answers(world: World) -> World:
    """Barnabas' answers. An entity that is named twice is answered once, with the error of its last entry."""
    image = ClusterImage()
    codes = []
    for entries in world["requests"]:
        request = AlterClientQuotasRequest(entries=[_alteration(entry) for entry in entries])
        records, response = result_of(alter_quotas_steps(image, request, ()))
        for record in records:
            replay_record(image, record, ClusterDelta())
        code_of = {
            _names((part.entity_type, part.entity_name) for part in result.entity): result.error_code
            for result in response.entries
        }
        codes.append([code_of[_names(entry["entity"].items())] for entry in entries])
    return {"codes": codes, "selected": [_selected(image, filter_) for filter_ in world["filters"]]}


def _names(entity: Iterable[tuple[str, str | None]]) -> frozenset[tuple[str, str | None]]:
    return frozenset(entity)


def _alteration(entry: World) -> AlterClientQuotasRequestEntryData:
    return AlterClientQuotasRequestEntryData(
        entity=[
            AlterClientQuotasRequestEntityData(entity_type=kind, entity_name=name)
            for kind, name in entry["entity"].items()
        ],
        ops=[OpData(key=op["key"], value=op["value"] or 0.0, remove=op["value"] is None) for op in entry["ops"]],
    )


def _selected(image: ClusterImage, filter_: World) -> Any:
    request = DescribeClientQuotasRequest(
        strict=filter_["strict"],
        components=[
            ComponentData(entity_type=part["type"], match_type=part["match_type"], match=part["match"])
            for part in filter_["components"]
        ],
    )
    try:
        quota_filter = QuotaFilter(request)
    except KafkaError as error:
        return int(error.code)
    return {
        json.dumps(dict(entity), separators=(",", ":")): values
        for entity, values in image.quotas.items()
        if quota_filter.selects(entity)
    }


COMPARISON = Comparison(new_world, "org.apache.kafka.controller.QuotaChanges", answers)

if __name__ == "__main__":
    sys.exit(COMPARISON.main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000))
