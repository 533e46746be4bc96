"""Transactions: the coordinator of transactional producers (KIP-98, KIP-360, KIP-890). Rules T1-T13."""
