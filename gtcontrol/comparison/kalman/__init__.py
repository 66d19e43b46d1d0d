"""The covariance flow beside the Riccati solvers of control theory, each of which is judged."""
