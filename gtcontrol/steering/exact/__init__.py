"""Exact steering: what can be reached, and controllers in closed form."""
