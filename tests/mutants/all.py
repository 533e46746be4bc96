"""All planted bugs."""

from __future__ import annotations

from tests.mutants.broker.access_mutants import ACCESS
from tests.mutants.broker.broker_mutants import BROKER
from tests.mutants.broker.cost_mutants import COSTS
from tests.mutants.broker.fuzz_mutants import FUZZ
from tests.mutants.broker.hostile_mutants import HOSTILE
from tests.mutants.broker.limit_mutants import LIMITS
from tests.mutants.broker.quota_mutants import QUOTAS
from tests.mutants.broker.turn_mutants import TURNS
from tests.mutants.cluster.controller_mutants import CONTROLLER
from tests.mutants.cluster.follower_mutants import FOLLOWER
from tests.mutants.cluster.member_mutants import MEMBER
from tests.mutants.cluster.metadata_change_mutants import METADATA_CHANGES
from tests.mutants.cluster.migration_mutants import MIGRATION
from tests.mutants.cluster.replication_mutants import REPLICATION
from tests.mutants.coordinators.coordinator_move_mutants import COORDINATOR_MOVES
from tests.mutants.coordinators.group_mutants import GROUPS
from tests.mutants.coordinators.share_group_mutants import SHARE_GROUPS
from tests.mutants.coordinators.share_mutants import SHARE
from tests.mutants.coordinators.streams_mutants import STREAMS
from tests.mutants.coordinators.transaction_mutants import TRANSACTIONS
from tests.mutants.mutant import Mutant
from tests.mutants.storage.compaction_mutants import COMPACTION
from tests.mutants.storage.dir_move_mutants import DIR_MOVES
from tests.mutants.storage.disk_fault_mutants import DISK_FAULTS
from tests.mutants.storage.durability_mutants import DURABILITY
from tests.mutants.storage.file_mutants import FILES
from tests.mutants.storage.storage_mutants import STORAGE
from tests.mutants.tools.administration_mutants import ADMINISTRATION
from tests.mutants.tools.cli_mutants import CLI
from tests.mutants.tools.data_command_mutants import DATA_COMMANDS
from tests.mutants.tools.kafka_tool_mutants import KAFKA_TOOLS
from tests.mutants.tools.page_mutants import PAGES
from tests.mutants.tools.pipeline_mutants import PIPELINE
from tests.mutants.tools.platform_mutants import PLATFORMS
from tests.mutants.tools.screen_mutants import SCREENS

MUTANTS: tuple[Mutant, ...] = (
    *METADATA_CHANGES,
    *ACCESS,
    *CONTROLLER,
    *REPLICATION,
    *STORAGE,
    *FOLLOWER,
    *MEMBER,
    *DURABILITY,
    *DISK_FAULTS,
    *DIR_MOVES,
    *FILES,
    *COMPACTION,
    *BROKER,
    *TRANSACTIONS,
    *COORDINATOR_MOVES,
    *GROUPS,
    *ADMINISTRATION,
    *MIGRATION,
    *SHARE,
    *SHARE_GROUPS,
    *STREAMS,
    *HOSTILE,
    *FUZZ,
    *TURNS,
    *COSTS,
    *SCREENS,
    *LIMITS,
    *QUOTAS,
    *DATA_COMMANDS,
    *CLI,
    *KAFKA_TOOLS,
    *PIPELINE,
    *PLATFORMS,
    *PAGES,
)
