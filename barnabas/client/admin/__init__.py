"""Admin operations on a cluster: one module for each kind of resource, one function for each operation."""
