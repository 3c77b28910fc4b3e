"""Programs of shuffles: from the vectors that are loaded to those that are stored."""
