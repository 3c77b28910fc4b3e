"""Commands recorded once, to be replayed by one call and shipped to programs without Python."""
