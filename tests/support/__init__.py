"""What tests of every folder use to say what they check."""
