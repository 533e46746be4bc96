"""Groups: members of a consumer group, and the operations on groups of every type."""
