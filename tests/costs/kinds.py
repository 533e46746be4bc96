"""All kinds of requests that are counted, in the order of the table."""

from __future__ import annotations

from tests.costs.fetch_kinds import FETCH
from tests.costs.group_kinds import GROUPS
from tests.costs.kind import Kind
from tests.costs.metadata_kinds import METADATA
from tests.costs.produce_kinds import PRODUCE
from tests.costs.secured_kinds import SECURED
from tests.costs.share_kinds import SHARE
from tests.costs.transaction_kinds import TRANSACTIONS

KINDS: tuple[Kind, ...] = (*PRODUCE, *TRANSACTIONS, *FETCH, *METADATA, *GROUPS, *SHARE, *SECURED)
