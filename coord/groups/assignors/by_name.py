"""The assignors by the names that clients and `group.consumer.assignors` use (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups.assignors import range as range_assignor
from barnabas.coord.groups.assignors import uniform

if TYPE_CHECKING:
    from barnabas.coord.groups.assignors.spec import Assignor

CONSUMER_ASSIGNORS: dict[str, Assignor] = {uniform.NAME: uniform.assign, range_assignor.NAME: range_assignor.assign}
"""The assignors of consumer groups."""
