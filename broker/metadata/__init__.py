"""The controller of a single-node cluster: the metadata log, the image made of it, and producer id blocks.

Every change of topics, configs or features goes through `Controller.commit`, which calls its subscribers before the
request is answered. It imports `config`, `log_dir_failures` and `event_loop` of the broker, `storage` for the log and
`coord.cluster` for the records; it does not import its subscribers.
"""
