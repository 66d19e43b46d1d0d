"""Cases and an independent integration for the tests of the regime rules."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

from gtcontrol import Gaussian, Parameters
from gtcontrol.certification.rules import RULES
from gtcontrol.certification.rules.base import Refuted
from gtcontrol.problem.definitions import CertificationProblem

I2 = np.eye(2)
J = np.array([[0.0, -1.0], [1.0, 0.0]])
Z2 = np.zeros((2, 2))


def problem(A, V, B, S0=None, *, L=None, noise=None):
    """Problem with one vertex; a start by its covariance or its factor."""
    p = Parameters(A=A, V=V, B=B, noise=noise)
    start = None
    if S0 is not None:
        start = Gaussian.from_covariance(np.zeros(p.dim), np.array(S0, dtype=float))
    if L is not None:
        start = Gaussian(np.zeros(p.dim), np.reshape(np.array(L, dtype=float), (p.dim, -1)))
    return CertificationProblem((p,), start)


def proved(case, claim):
    """Whether the rule of a claim accepts it."""
    try:
        RULES[claim.rule].check(case, claim)
    except Refuted:
        return False
    return True


def statement(case, claim):
    return RULES[claim.rule].state(case, claim)


def integrate(p, L0, horizon=10.0):
    """Return whether the covariance blew up, when (or the horizon), and the factor at that time.

    The factor is integrated in the time τ with dt = dτ/(1 + |L|²), so that blow-up is reached
    gently; at |L|² = 1e9 what is left of the time is below 1e-9 times the inverse rate.  Errors
    are relative throughout: some bounds hold with equality while L decays to 1e-13.
    """
    d, r = L0.shape

    def rate(_, y):
        L = y[:-1].reshape(d, r)
        F = p.A @ L
        for V, B, _beta in p.heads:
            F = F + V @ L @ (L.T @ B @ L)
        w = 1.0 / (1.0 + np.sum(L * L))
        return np.append((F * w).ravel(), w)

    def large(_, y):
        return np.sum(y[:-1] ** 2) - 1e9

    def late(_, y):
        return y[-1] - horizon

    large.terminal = late.terminal = True
    y0 = np.append(L0.ravel(), 0.0)
    options = {"method": "DOP853", "rtol": 1e-9, "atol": 1e-20, "events": [large, late]}
    run = solve_ivp(rate, (0.0, 4000.0), y0, **options)
    end = run.y[:, -1]
    return bool(run.t_events[0].size), float(end[-1]), end[:-1].reshape(d, r)
