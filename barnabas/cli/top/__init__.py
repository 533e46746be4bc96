"""`barnabas top`: a cluster on a full screen, live."""
