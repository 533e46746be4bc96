"""Share groups: heartbeats, ShareFetch, acknowledgements, the state of share partitions."""
