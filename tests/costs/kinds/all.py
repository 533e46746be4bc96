"""All kinds of requests that are counted, in the order of the table."""

from __future__ import annotations

from dataclasses import replace

from tests.costs.kind import Kind
from tests.costs.kinds.fetch_kinds import FETCH
from tests.costs.kinds.group_kinds import GROUPS
from tests.costs.kinds.metadata_kinds import METADATA
from tests.costs.kinds.produce_kinds import PRODUCE
from tests.costs.kinds.secured_kinds import SECURED
from tests.costs.kinds.share_kinds import SHARE
from tests.costs.kinds.transaction_kinds import TRANSACTIONS
from tests.costs.world import METRICS

_HOT = (
    "Produce 1 record",
    "Produce 1 record, 50 connections",
    "Fetch 1 record",
    "Heartbeat",
    "OffsetCommit",
)
_PLAIN: tuple[Kind, ...] = (*PRODUCE, *TRANSACTIONS, *FETCH, *METADATA, *GROUPS, *SHARE, *SECURED)
_COUNTED = (replace(kind, name=f"{kind.name}, metrics", world=METRICS) for kind in _PLAIN if kind.name in _HOT)
"""What counting for a listener of metrics costs."""

KINDS: tuple[Kind, ...] = (*_PLAIN, *_COUNTED)
