"""Settings shared by all tests."""

import os

# The matrices of the tests are small: threads of the linear algebra library only wait for
# each other.  All must be set before NumPy or Matplotlib is imported.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ.get("OPENBLAS_NUM_THREADS") or "1"
os.environ["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS") or "1"  # of torch
os.environ.setdefault("MPLBACKEND", "Agg")

import hypothesis

hypothesis.settings.register_profile(
    "gtcontrol", max_examples=40, deadline=None, derandomize=True, print_blob=True
)
hypothesis.settings.load_profile("gtcontrol")
