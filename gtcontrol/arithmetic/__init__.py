"""Arithmetic that proves: exact fractions, balls, and floats with rigorous error bounds.

Matrices of floats are exact (each float is a dyadic fraction).  What these modules answer with
True is a theorem about the numbers given; False means only that no proof was found.

Numbers, exact:
    ``fractions`` matrices of fractions; ``dyadic`` arrays of whole numbers times a power of two;
    ``spectra`` how many eigenvalues lie on which side of the imaginary axis; ``invariance``
    invariant subspaces and the exponents of motions in them.
Numbers, enclosed:
    ``balls`` matrices of balls, of any precision; ``floats`` large matrices with error bounds;
    ``matrices`` one kind of matrix for both (``abstract`` what it can do, ``ball_matrices`` up to
    order 32, ``float_matrices`` above).  Write a theorem with these.
Questions about matrices:
    ``definiteness``; ``norms`` bounds on norms and eigenvalues; ``eigenpairs`` left eigenvectors;
    ``symmetric`` linear and quadratic maps of symmetric matrices.
Zeros:
    ``newton`` zeros of a function near an approximate one; ``isotropy`` common zeros of forms.
Functions:
    ``elementary`` quotients of elementary functions; ``exponentials`` forms along a linear flow;
    ``taylor`` tubes around solutions of a quadratic differential equation.
Approximations, which prove nothing:
    ``sign_functions`` invariant subspaces and eigenvalues at any precision.
"""
