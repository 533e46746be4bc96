"""Messages of topics: pages of them, what their bytes mean, filters, exports, records to produce.

Functions over `barnabas.client` and plain values, without HTTP.
"""
