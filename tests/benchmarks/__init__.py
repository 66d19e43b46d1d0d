"""Figures of the package, measured in one run: ``python -m tests.benchmarks``."""
