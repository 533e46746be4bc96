"""`barnabas serve --brokers N`: a supervisor, the controllers and the brokers of a cluster on one machine."""
