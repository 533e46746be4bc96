"""The screens: what the navigation shows, and the modules that declare resources. A screen is one line of `SCREENS`."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

from barnabas.console.screens import configs, figures, lab, overview, pipelines, requests, transactions
from barnabas.console.screens.access import acls, quotas, tokens, users
from barnabas.console.screens.cluster import balance, brokers, partitions, quorum_and_disks
from barnabas.console.screens.groups import listing, offsets, one
from barnabas.console.screens.messages import browse, export, live, produce, records, schemas
from barnabas.console.screens.topics import changes as topic_changes
from barnabas.console.screens.topics import listing as topic_listing
from barnabas.console.screens.topics import topic


@dataclass(frozen=True)
class Screen:
    """One entry of the navigation."""

    title: str
    path: str
    key: str
    """The letter that opens it after `g`."""
    modules: tuple[ModuleType, ...]
    also: tuple[str, ...] = ()
    """Further paths of its pages."""

    def is_current(self, path: str) -> bool:
        """Whether a page at `path` belongs to this screen."""
        return path == self.path or path.startswith(self.path.rstrip("/") + "/") or path in self.also


SCREENS = (
    Screen("Overview", "/overview", "o", (overview, figures)),
    Screen("Topics", "/topics", "t", (topic_listing, topic, topic_changes)),
    Screen("Messages", "/messages", "m", (browse, records, live, export, produce, schemas)),
    Screen("Groups", "/groups", "g", (listing, one, offsets)),
    Screen("Transactions", "/transactions", "x", (transactions,)),
    Screen("Cluster", "/cluster", "c", (brokers, partitions, balance, quorum_and_disks)),
    Screen("Configs", "/configs", "f", (configs,)),
    Screen("Users", "/users", "u", (users,)),
    Screen("ACLs", "/acls", "a", (acls,), ("/may",)),
    Screen("Quotas", "/quotas", "q", (quotas,)),
    Screen("Tokens", "/tokens", "k", (tokens,)),
    Screen("Requests", "/requests", "r", (requests,)),
    Screen("Test lab", "/lab", "l", (lab,)),
    Screen("Pipelines", "/pipelines", "p", (pipelines,)),
)
