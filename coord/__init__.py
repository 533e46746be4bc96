"""Pure state machines: groups, transactions, share groups, cluster metadata. No event loop, no network, no clock."""
