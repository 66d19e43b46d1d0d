"""Results: frozen values that hold their problem, and how they are saved."""
