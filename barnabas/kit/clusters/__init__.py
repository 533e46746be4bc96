"""The virtual clusters of a process: brokers in memory, their clocks, their files, and snapshots of them."""
