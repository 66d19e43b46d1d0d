"""Kalman theory beside ours: the only room that imports python-control.

`kalman` holds the covariance flow against the Riccati solvers of control theory, `filtering` makes
attention a Kalman-Bucy filter, and `feedback` brings perturbed starts back to a plan.
"""
