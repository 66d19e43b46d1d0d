"""Arithmetic that proves: exact fractions, balls, and floats with rigorous error bounds.

Matrices of floats are exact (each float is a dyadic fraction).  What these modules answer with
True is a theorem about the numbers given; False means only that no proof was found.
"""
