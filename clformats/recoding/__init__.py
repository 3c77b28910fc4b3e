"""Kernels of quantised tensors: to numbers, from numbers, and bits from layout to layout."""
