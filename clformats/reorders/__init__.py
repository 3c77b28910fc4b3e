"""What users call on a device: reorders, maps, index kernels, and warming up for them."""
