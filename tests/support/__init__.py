"""What tests of every folder share: what a run costs, and helpers that belong to no single folder."""
