"""`make soak MINUTES=n`: proof by volume, part by part with new seeds, recorded in docs/evidence/proof.jsonl."""
