"""Reads the files of a log directory for `barnabas dump-log`, in the format of Kafka's kafka-dump-log.

The files are parsed here, not by the broker's storage code, as an independent check of it. Each reader yields `Item`s
(one line of text, or one JSON object) and adds problems to `Problems`.
"""
