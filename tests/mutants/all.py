"""All planted bugs."""

from __future__ import annotations

from tests.mutants.access_mutants import ACCESS
from tests.mutants.administration_mutants import ADMINISTRATION
from tests.mutants.broker_mutants import BROKER
from tests.mutants.cli_mutants import CLI
from tests.mutants.compaction_mutants import COMPACTION
from tests.mutants.controller_mutants import CONTROLLER
from tests.mutants.coordinator_move_mutants import COORDINATOR_MOVES
from tests.mutants.cost_mutants import COSTS
from tests.mutants.data_command_mutants import DATA_COMMANDS
from tests.mutants.dir_move_mutants import DIR_MOVES
from tests.mutants.disk_fault_mutants import DISK_FAULTS
from tests.mutants.durability_mutants import DURABILITY
from tests.mutants.file_mutants import FILES
from tests.mutants.follower_mutants import FOLLOWER
from tests.mutants.fuzz_mutants import FUZZ
from tests.mutants.group_mutants import GROUPS
from tests.mutants.hostile_mutants import HOSTILE
from tests.mutants.kafka_tool_mutants import KAFKA_TOOLS
from tests.mutants.limit_mutants import LIMITS
from tests.mutants.member_mutants import MEMBER
from tests.mutants.metadata_change_mutants import METADATA_CHANGES
from tests.mutants.migration_mutants import MIGRATION
from tests.mutants.mutant import Mutant
from tests.mutants.page_mutants import PAGES
from tests.mutants.pipeline_mutants import PIPELINE
from tests.mutants.platform_mutants import PLATFORMS
from tests.mutants.quota_mutants import QUOTAS
from tests.mutants.replication_mutants import REPLICATION
from tests.mutants.screen_mutants import SCREENS
from tests.mutants.share_group_mutants import SHARE_GROUPS
from tests.mutants.share_mutants import SHARE
from tests.mutants.storage_mutants import STORAGE
from tests.mutants.streams_mutants import STREAMS
from tests.mutants.transaction_mutants import TRANSACTIONS
from tests.mutants.turn_mutants import TURNS

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
