"""A layout with sizes: element types, geometry, memory descriptors, and the operations on them."""
