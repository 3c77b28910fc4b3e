"""Other projects' languages: their notations, files, benchdnn, and oneDNN's own kinds."""
