"""`barnabas serve --check`: whether Barnabas can take over the configuration and the directories of a Kafka broker.

Everything is read, nothing is written: no lock is taken, so that it may be asked while that broker still runs.
"""
