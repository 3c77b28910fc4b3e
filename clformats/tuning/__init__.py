"""The tuner: searches for plans that are faster than those by the rules, and records them."""
