"""Algebraic Riccati, Bernoulli and Lyapunov equations, solved with an honest error.

Every answer is judged by residual, forward error, closed-loop spectrum and definiteness; where
double precision does not suffice, the work is repeated in extended precision.
"""
