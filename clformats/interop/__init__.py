"""Other projects' languages: their notations, benchdnn, and oneDNN's own kinds."""
