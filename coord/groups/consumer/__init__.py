"""The consumer protocol, in which the coordinator makes the assignment (KIP-848; rules G3, G4)."""
