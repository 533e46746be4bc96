"""Client quotas without a clock: their keys and values, the quota of each client, and the rates they are held to."""
