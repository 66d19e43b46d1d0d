"""Design: constant parameters that make a given Gaussian attracting."""
