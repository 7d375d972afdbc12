"""Stands in for the Agent Memory Benchmark, which is in no index of packages."""
