"""The cluster: its metadata as an image replayed from KRaft records, and the controller that writes them."""
