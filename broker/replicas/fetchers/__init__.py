"""Followers: this broker's fetches from the leaders of the partitions that it follows (R4, R5, R8, R20, R24)."""
