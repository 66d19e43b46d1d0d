"""Attention as a Kalman-Bucy filter, beside that of python-control, and with actual tokens.

Tokens with value matrix V = v I and score matrix B = -Cᵀ R⁻¹ C/(2 v) move like the members of the
deterministic ensemble Kalman-Bucy filter (Bergemann and Reich 2012),

    x' = A x + f + ½ S Cᵀ R⁻¹ (2 y - C x - C m),

if a second head of uniform attention, whose average is the mean m of the tokens, takes back v m
and gives the half of the gain that acts on m.  The only input is b = S Cᵀ R⁻¹ y + f.
"""
