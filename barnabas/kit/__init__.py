"""`barnabas serve --control`: requests of tests to a broker beside Kafka's protocol, over HTTP with a token.

A broker that is started without `--control` does not import it.
"""
