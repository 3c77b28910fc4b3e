"""What happens to values on the way: attributes, formulas, and transforms such as Winograd's."""
