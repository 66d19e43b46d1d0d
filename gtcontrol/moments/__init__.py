"""Gaussian moments of activations, and the affine maps that stand for a feed-forward layer."""
