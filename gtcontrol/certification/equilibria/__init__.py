"""Equilibria of the covariance and of the mean, found numerically and classified."""
