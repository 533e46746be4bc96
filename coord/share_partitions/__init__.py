"""One partition as read by one share group: which member has which record, and which are finished (KIP-932, G5, G6)."""
