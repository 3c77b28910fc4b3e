"""Tensors in memory of the host, without a device: packing, unpacking, and host memory objects."""
