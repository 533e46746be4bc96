"""Load generators, each a process of its own: raw frames in C or Python, confluent-kafka, group members."""
