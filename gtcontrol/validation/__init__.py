"""Validation: actual tokens moved by actual softmax attention."""
