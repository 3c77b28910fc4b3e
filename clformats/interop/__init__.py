"""Other projects' languages: their notations, benchdnn, and oneDNN's own kinds."""

from . import notations

__all__ = ["notations"]
