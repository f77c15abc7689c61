"""What several benchmarks measure with: process trees, processor time by step, ports, data directories."""
