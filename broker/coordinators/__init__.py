"""Group, transaction and share coordinators at work: pure state machines run over partitions of internal topics."""
