"""All kinds of requests that are counted, in the order of the table."""

from __future__ import annotations

from tests.costs.kind import Kind
from tests.costs.kinds.fetch_kinds import FETCH
from tests.costs.kinds.group_kinds import GROUPS
from tests.costs.kinds.metadata_kinds import METADATA
from tests.costs.kinds.produce_kinds import PRODUCE
from tests.costs.kinds.secured_kinds import SECURED
from tests.costs.kinds.share_kinds import SHARE
from tests.costs.kinds.transaction_kinds import TRANSACTIONS

KINDS: tuple[Kind, ...] = (*PRODUCE, *TRANSACTIONS, *FETCH, *METADATA, *GROUPS, *SHARE, *SECURED)
