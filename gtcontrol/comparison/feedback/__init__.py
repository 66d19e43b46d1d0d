"""Gaussian laws as systems of python-control, and feedback around a plan."""
