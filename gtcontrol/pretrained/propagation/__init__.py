"""Gaussian moments through the blocks of a Transformer: normalisation, attention, activations."""
