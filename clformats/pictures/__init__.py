"""Layouts for people: words and drawings."""
