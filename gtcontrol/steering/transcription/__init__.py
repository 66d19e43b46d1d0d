"""Transcription of a steering problem into a nonlinear program, with CasADi.

State x = (L, m): the factor makes the rank of the covariance a shape.  Two-point
Gauss–Legendre collocation (order 4) in derivative form, with stage derivatives F₁, F₂
as unknowns:

    x_{k+1} = x_k + h Σ_j w_j F_j,      X_j = x_k + h Σ_i a_ji F_i,      F_j = field(X_j, u_j).

A program is built once for each form (sizes and switches) and takes all numbers as
parameters, so that many starts and many problems of one form share it.  Derivatives are
made once for a single interval and laid out along the horizon.
"""
