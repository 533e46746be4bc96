"""The console: pages about a cluster, in a process of their own beside the broker."""
