"""Validation of the theory on actual tokens."""
