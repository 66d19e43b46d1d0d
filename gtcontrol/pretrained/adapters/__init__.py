"""Readers of checkpoints: the only modules that know the libraries they come from."""
