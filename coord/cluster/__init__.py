"""The cluster metadata: an image replayed from KRaft records, and the controller that creates the records."""
