"""`make prove`: the evidence that Barnabas keeps its promises, run step by step into a page."""
