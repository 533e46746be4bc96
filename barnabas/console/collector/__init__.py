"""Samples a cluster in the background: rates, lags, open transactions and warnings, for pages and `barnabas top`."""
