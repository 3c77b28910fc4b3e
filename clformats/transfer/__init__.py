"""Moving tensors between the host and devices, in chunks: `clformats.transfer.route`."""
