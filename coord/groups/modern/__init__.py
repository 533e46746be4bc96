"""What consumer and share groups have in common: epochs, target assignments, subscriptions (KIP-848, KIP-932)."""
