"""Algebraic Riccati, Bernoulli and Lyapunov equations, solved with an honest error.

Every answer is judged by residual, forward error, closed-loop spectrum and definiteness; where
double precision does not suffice, the work is repeated in extended precision.

``equation`` is what is asked, and ``solver`` decides in which order the others are tried:
``starts`` and ``refinement`` (floats, with residuals from ``residual`` and ``pairs``), ``modes``,
``marginal`` and ``boundary`` (structure: modes that inputs do not reach or weights do not see),
``extended`` (any precision), ``hamiltonian`` (why there is none).  ``signs`` tells definiteness
and rank, and ``judgement`` judges matrices that others have computed.  Lyapunov equations with
eigenvalues that sum to zero are solved by ``gtcontrol.riccati_flow.lyapunov``.
"""
