"""The tuner: it searches for plans that are faster than the rules', and keeps records of them."""
