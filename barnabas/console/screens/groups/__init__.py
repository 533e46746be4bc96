"""Groups: the list, one group, its offsets."""
