"""Consumer groups whose members the coordinator assigns: the protocol of KIP-848 (rules G3, G4)."""
