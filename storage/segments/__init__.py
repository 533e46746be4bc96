"""A log's segments: the file of batches, the indexes beside it, and the list of all segments."""
