"""The log of the metadata on disk, for every role: the controller's own log, a broker's copy of it, and snapshots."""
