"""Groups of consumers and streams: membership, description, committed offsets."""
