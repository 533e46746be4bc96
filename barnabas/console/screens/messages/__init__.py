"""The screen of messages: pages of records, one record, live tails, comparisons, exports, records to produce."""
