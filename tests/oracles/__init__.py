"""Independent sources of truth for the tests."""
