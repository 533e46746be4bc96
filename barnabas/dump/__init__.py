"""What stands in the files of a log directory, told as Kafka's kafka-dump-log tells it; behind `barnabas dump-log`.

The files are read here on their own, not through the broker's storage: a second opinion on what storage writes. Each
reader yields `Item`s (one line of text, or one JSON object) and notes what is wrong in `Problems`.
"""
