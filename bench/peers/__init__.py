"""Other libraries that the benchmarks compare with and the conformance tests ask."""
