"""Log directories: replicas that move between them, and replicas that a failed or full one cannot serve."""
