"""Simulation of the Gaussian law: as a flow, and through residual layers."""
