"""The operations of the control channel on one cluster. `registry` lists them by name with their modules."""
