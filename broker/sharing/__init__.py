"""Share partitions at work (KIP-932): delivery, acknowledgement, share sessions and dead-letter queues."""
