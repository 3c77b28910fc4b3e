"""The assignment of least cost, with a proof: exact elimination, and HiGHS for dense problems."""
