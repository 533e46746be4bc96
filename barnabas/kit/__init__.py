"""`barnabas serve --control`: what tests ask of a broker beside Kafka's protocol, over HTTP with a token.

Nothing of it is imported by a broker that is started without `--control`.
"""
