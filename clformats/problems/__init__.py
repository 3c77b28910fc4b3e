"""Reorders as loop nests with two strides each: what has to be moved, and on what device."""
