"""What OpenCL there is on this machine, what is wrong with it, and which command mends it.

Needs no device, and neither pyopencl nor numpy: it works where everything else fails.
"""
