"""What an administrator asks of a cluster: one module for each kind of resource, one function for each operation."""
