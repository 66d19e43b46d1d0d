"""Blow-up times against closed forms, and the time of the import."""

from __future__ import annotations

import statistics
import subprocess
import sys

import numpy as np

import gtcontrol as gt

from .figures import Figure

DEFAULT_COUNT = 40
IMPORTS = 5


def measure_blow_up(count: int) -> list[Figure]:
    """Scalar laws with and without A, and matrix laws with V = I."""
    worst, found = 0.0, 0
    rng = np.random.default_rng(7)
    for k in range(count):
        d = 1 + k % 5
        parameters, start, exact = _scalar(rng) if k % 2 else _matrix(rng, d)
        run = gt.simulate(start, parameters, 3.0 * exact)
        found += run.status is gt.Status.BLOW_UP
        worst = max(worst, abs(run.blow_up_time / exact - 1))
    return [
        Figure(
            f"blow-up time, {count} laws ({found} found)",
            f"relative error {worst:.1e}",
            "<= 1e-11",
            found == count and worst <= 1e-11,
        )
    ]


def _scalar(rng: np.random.Generator) -> tuple[gt.Parameters, gt.Gaussian, float]:
    """s' = 2 a s + 2 v b s², so T* = ln(1 + a/(v b s₀))/(2a); a of either sign."""
    v, b, s0 = np.exp(rng.uniform(-1, 1, 3))
    a = rng.uniform(-0.9, 3.0) * v * b * s0
    parameters = gt.Parameters(A=[[a]], V=[[v]], B=[[b]])
    return (
        parameters,
        gt.Gaussian([0.3], [[np.sqrt(s0)]]),
        float(np.log1p(a / (v * b * s0)) / (2 * a)),
    )


def _matrix(rng: np.random.Generator, d: int) -> tuple[gt.Parameters, gt.Gaussian, float]:
    """V = I, A = 0: S(t)⁻¹ = S₀⁻¹ - (B + Bᵀ) t, so T* = 1/λ_max(L₀ᵀ(B + Bᵀ)L₀)."""
    L = rng.standard_normal((d, d)) + 2 * np.eye(d)
    B = rng.standard_normal((d, d)) + np.eye(d)
    largest = float(np.linalg.eigvalsh(L.T @ (B + B.T) @ L)[-1])
    if largest <= 0:
        B, largest = -B, float(np.linalg.eigvalsh(-L.T @ (B + B.T) @ L)[-1])
    return gt.Parameters(B=B, V=np.eye(d)), gt.Gaussian(rng.standard_normal(d), L), 1 / largest


def measure_import(count: int) -> list[Figure]:
    """`import gtcontrol` in fresh processes."""
    code = "import time; t = time.perf_counter(); import gtcontrol; print(time.perf_counter() - t)"
    seconds = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(count)
    ]
    median = statistics.median(seconds)
    return [Figure("import gtcontrol, median", f"{median:.3f} s", "< 0.5 s", median < 0.5)]
