"""The public table of speeds: `python -m bench`."""
