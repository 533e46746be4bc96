"""Looking over a log directory that no broker is using, and repairing what is damaged in it. Rule L2."""
