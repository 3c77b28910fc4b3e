"""What there is to choose of a problem's kernels: values to measure, parameters to search."""
