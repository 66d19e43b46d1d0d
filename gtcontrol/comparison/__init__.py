"""Kalman theory beside ours: the only room that imports python-control.

Covariances that python-control computes are held against the flow, attention acts as a
Kalman-Bucy filter, and plans get feedback.
"""
