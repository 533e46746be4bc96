"""One partition as one share group reads it: who has which record, and what is done (KIP-932, rules G5 and G6)."""
