"""`barnabas serve --secure` and `barnabas cert`: a CA, certificates and a first user, made once."""
