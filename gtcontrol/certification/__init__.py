"""Certificates of stability and blow-up, equilibria, and design."""
