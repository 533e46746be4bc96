"""The cluster's metadata: its log, the controller that appends to it, and producer ids."""
