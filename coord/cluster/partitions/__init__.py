"""Leaders, ISR, ELR and replicas of partitions: every change ends in `partition_change`."""
