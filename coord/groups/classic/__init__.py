"""The classic protocol (JoinGroup, SyncGroup, Heartbeat): one member, the leader, makes the assignment (KIP-62)."""
