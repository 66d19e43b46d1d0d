"""Softmax attention over finitely many Gaussian tokens, averaged over the tokens.

``weights`` holds the moments of the softmax weights (exact integrals, tabulated), ``nodes``
the points at which a Gaussian is averaged over, and ``closure`` puts both together: mean
attention, its slope and its noise.
"""
