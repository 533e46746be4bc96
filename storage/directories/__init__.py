"""Log directories: lock, identity, checkpoints, deletion, and moves of a log between them (L15)."""
