"""Local certificates: what is proved near equilibria, held against accurate integration."""

from __future__ import annotations

from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import solve_ivp

import gtcontrol as gt
from gtcontrol.arithmetic import balls
from gtcontrol.arithmetic.matrices import BallMatrix, enclose
from gtcontrol.arithmetic.newton import zero_radius
from gtcontrol.arithmetic.norms import frobenius_bound, norm_bound
from gtcontrol.arithmetic.symmetric import (
    curvature,
    in_coordinates,
    linearisation,
    matrix_of,
    weighted_cubic,
)
from gtcontrol.certification.equilibria.classification import frame
from gtcontrol.certification.equilibria.quadratic import Quadratic, coordinates, symmetric
from gtcontrol.certification.rules import rule
from gtcontrol.certification.rules.base import Refuted, Scope
from gtcontrol.certification.rules.mean_refusal import refusal
from gtcontrol.certification.search.local import find, stability_claim
from gtcontrol.problem.definitions import CertificationProblem
from gtcontrol.results.claims import Claim
from gtcontrol.status import Verdict
from tests.oracles.factors import factor_radius

CASES = {
    "rank lost": {"V": [[1, 0.5], [0.5, 1]], "B": -np.eye(2), "A": [[10, -7.5], [5, -3]]},
    "bistable": {"V": [[5, -3], [-3, 2]], "B": np.diag([-7, -1]), "A": [[112, -19], [-70, 12]]},
    "cycle": {"V": [[1, 1], [1, 4]], "B": [[-3, 1], [1, -1]], "A": [[4, 10.5], [-76, 18]]},
    "nonsymmetric": {"A": np.diag([1, 0.5]), "V": [[2, 1], [0, 1]], "B": [[-1, -1], [1, -2]]},
    "mean": {"A": np.eye(2), "B": np.eye(2) / 2, "V": -np.eye(2), "b": [1.0, 2.0]},
    "scalar value": {"A": [[1, 2], [0, 3]], "B": -np.eye(2) / 2, "V": np.eye(2)},
}


def problem(name: str, start: gt.Gaussian | None = None) -> CertificationProblem:
    return CertificationProblem((gt.Parameters(**CASES[name]),), start)


def claims(of: CertificationProblem, name: str) -> list[Claim]:
    return [c for c in find(of) if c.rule == name]


def check(of: CertificationProblem, claim: Claim) -> None:
    rule(claim.rule).check(of, claim)


def rate(p: gt.Parameters, S: np.ndarray) -> np.ndarray:
    """S' by the definition, written apart from the package."""
    made = p.A @ S + S @ p.A.T
    for V, B, _ in p.heads:
        made = made + V @ S @ B @ S + S @ B.T @ S @ V.T
    return made if p.noise is None else made + p.noise


def path(p: gt.Parameters, S: np.ndarray, times: np.ndarray) -> np.ndarray:
    d = len(S)
    found = solve_ivp(
        lambda t, s: coordinates(rate(p, symmetric(s, d))),
        (0.0, times[-1]),
        coordinates(S),
        method="LSODA",
        t_eval=times,
        rtol=1e-12,
        atol=1e-14,
    )
    assert found.success
    return symmetric(found.y.T, d)


def random_problem(rng: np.random.Generator, d: int, heads: int = 1) -> CertificationProblem:
    V = np.eye(d) + 0.3 * rng.standard_normal((heads, d, d))
    B = -np.eye(d) - 0.2 * rng.standard_normal((heads, d, d))
    A = 2 * np.eye(d) + rng.standard_normal((d, d))
    return CertificationProblem((gt.Parameters(A=A, B=-B, V=-V, b=rng.standard_normal(d)),))


# -- what is proved --------------------------------------------------------------------------

EXPECTED = {
    "rank lost": ["mean-stability", "local-stability"],
    "bistable": ["local-stability", "local-stability", "unstable-equilibrium"],
    "cycle": ["unstable-equilibrium"],
    "nonsymmetric": ["local-stability"],
    "mean": ["mean-stability", "local-stability"],
    "scalar value": ["local-stability"],
}


@pytest.mark.parametrize("name", CASES)
def test_what_linearisation_shows_is_proved(name):
    of = problem(name)
    found = list(find(of))
    assert [c.rule for c in found] == EXPECTED[name]
    for claim in found:
        assert not claim.proved
        check(of, claim)


def test_the_rate_is_nearly_that_of_the_linearisation():
    for name, wanted in (("bistable", 0.168076221908763), ("mean", 2.0)):
        claim = claims(problem(name), "local-stability")[0]
        assert claim.numbers["rate"] == pytest.approx(wanted, rel=1e-4)
        assert claim.numbers["rate"] <= wanted


def test_where_the_region_is_known_it_is_found_whole():
    """A = a I, V = I, B = -I/2: s' = 2 a s - s² in every direction, so the region ends at 0."""
    of = CertificationProblem((gt.Parameters(A=2 * np.eye(2), B=-np.eye(2) / 2, V=np.eye(2)),))
    (claim,) = find(of)
    check(of, claim)
    assert claim.numbers["reach"] == pytest.approx(4.0, rel=1e-5)


def test_lyapunov_norms_give_at_least_the_region_of_the_plain_bound():
    """For symmetric V > 0 and B = -β I the Frobenius norm at S* = I contracts for every gauge."""
    rng = np.random.default_rng(3)
    for _ in range(3):
        L, skew = rng.standard_normal((2, 3, 3))
        V, B = L @ L.T + np.eye(3), -np.eye(3)
        A = (skew - skew.T) - V @ B
        of = CertificationProblem((gt.Parameters(A=A, V=V, B=B),))
        found = next(e for e in gt.equilibria(of.parameters) if e.rank == 3)
        np.testing.assert_allclose(found.covariance, np.eye(3), atol=1e-10)
        claim = stability_claim(of, found)
        check(of, claim)
        # -2 tr(D V D B) >= α |D|², and the region |D| < α/(2 ‖V‖ ‖B‖).
        alpha = 2 * np.linalg.eigvalsh(V)[0]
        assert claim.numbers["reach"] >= 0.999 * alpha / (2 * np.linalg.norm(V, 2))


@given(st.integers(1, 3), st.integers(1, 2), st.integers(0, 10**6))
@settings(max_examples=8)
def test_everything_found_is_proved(d, heads, seed):
    of = random_problem(np.random.default_rng(seed), d, heads)
    for claim in find(of):
        check(of, claim)
        said = rule(claim.rule).state(of, claim)
        assert said.text.endswith(".")
        assert "nan" not in said.text


def test_the_words():
    of = problem("nonsymmetric")
    said = rule("local-stability").state(of, claims(of, "local-stability")[0])
    assert said.verdict is Verdict.LOCALLY_STABLE
    assert said.scope is Scope.SOME_STARTS
    assert "of rank 2, trace 0.85433638" in said.text
    assert "No mean is stable there: its Jacobian has the trace of V, 3 >= 0" in said.text
    of = problem("mean")
    said = rule("mean-stability").state(of, claims(of, "mean-stability")[0])
    assert "every mean tends to (1, 2)" in said.text
    assert "excludes" not in said.text
    of = problem("cycle")
    said = rule("unstable-equilibrium").state(of, claims(of, "unstable-equilibrium")[0])
    assert "repels" in said.text
    assert "at least 2 eigenvalues" in said.text


def test_a_trace_that_excludes_a_stable_mean():
    assert refusal(gt.Parameters(V=np.diag([1.0, -1.0]), B=np.eye(2))) != ""
    assert refusal(gt.Parameters(V=np.diag([1.0, -1.0 - 2**-52]), B=np.eye(2))) == ""
    noisy = gt.Parameters(V=np.eye(2), B=-np.eye(2), noise=np.eye(2))
    assert refusal(noisy) == ""


# -- held against integration ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["rank lost", "bistable", "nonsymmetric", "scalar value"])
def test_from_inside_the_region_the_norm_falls_at_the_rate_said(name):
    of, rng = problem(name), np.random.default_rng(1)
    p = of.parameters
    for claim in claims(of, "local-stability"):
        R, G, n = claim.arrays["frame"], claim.arrays["metric"], claim.numbers
        L = R[:, : int(n["rank"])]
        inverse = np.linalg.inv(R)
        for _ in range(3):
            D = rng.standard_normal((2, 2))
            S = L @ L.T
            D = D @ D.T if n["rank"] < 2 else D + D.T
            S0 = S + 0.95 * n["reach"] * D / np.linalg.norm(D)
            times = np.linspace(0.0, 3.0 / n["rate"], 12)
            away = inverse @ (path(p, S0, times) - S) @ inverse.T
            sizes = np.linalg.norm(coordinates(away) @ G.T, axis=1)
            assert sizes[0] < n["radius"]
            fall = np.exp(-n["rate"] * (1 - n["cubic"] * sizes[0]) * times)
            assert np.all(sizes <= (1 + 1e-6) * sizes[0] * fall + 1e-9 * n["radius"] + n["error"])


def test_a_start_inside_converges_and_one_outside_is_not_claimed():
    S = np.array([[3.2, 2.4], [2.4, 4.8]])
    inside = gt.Gaussian.from_covariance([0, 0], 1.05 * S)
    (claim,) = claims(problem("scalar value", inside), "local-stability")
    check(problem("scalar value", inside), claim)
    said = rule("local-stability").state(problem("scalar value", inside), claim)
    assert said.verdict is Verdict.CONVERGES
    assert said.scope is Scope.THIS_START
    for other in (gt.Gaussian.from_covariance([0, 0], 5 * S), gt.Gaussian([0, 0], [[1.0], [0.0]])):
        with pytest.raises(Refuted, match="farther from the equilibrium"):
            check(problem("scalar value", other), claim)
        assert "distance" not in claims(problem("scalar value", other), claim.rule)[0].numbers
    with pytest.raises(Refuted, match="problem has none"):
        check(problem("scalar value"), claim)


def test_singular_covariances_are_never_in_the_region_of_a_positive_definite_equilibrium():
    """The flow conserves the rank, so the theorem itself must leave them out."""
    for name in ("nonsymmetric", "scalar value", "mean"):
        for claim in claims(problem(name), "local-stability"):
            L = claim.arrays["frame"][:, : int(claim.numbers["rank"])]
            assert claim.numbers["reach"] <= np.linalg.eigvalsh(L @ L.T)[0] * (1 + 1e-6)


def test_the_mean_stays_below_its_bound():
    of, rng = problem("mean"), np.random.default_rng(2)
    p = of.parameters
    (claim,) = claims(of, "mean-stability")
    n, R = claim.numbers, claim.arrays["frame"]
    H = claim.arrays["mean metric"] @ np.linalg.inv(R)
    S = R @ R.T
    for _ in range(4):
        D = rng.standard_normal((2, 2))
        start = S + 0.5 * n["reach"] * (D + D.T) / np.linalg.norm(D + D.T)
        m = claim.arrays["mean"] + rng.standard_normal(2)
        run = gt.simulate(gt.Gaussian.from_covariance(m, start), p, 4.0)
        inverse = np.linalg.inv(R)
        size = np.linalg.norm(
            claim.arrays["metric"] @ coordinates(inverse @ (start - S) @ inverse.T)
        )
        fall = n["rate"] * (1 - n["cubic"] * size)
        first = np.linalg.norm(H @ (m - claim.arrays["mean"]))
        for t in (0.3, 1.0, 2.0, 4.0):
            a, b = n["mean rate"], fall
            folded = (np.exp(-b * t) - np.exp(-a * t)) / (a - b) if a != b else t * np.exp(-a * t)
            bound = np.exp(n["gain"] * size / fall) * (
                np.exp(-a * t) * first + n["drive"] * size * folded
            )
            assert np.linalg.norm(H @ (run.at(t).mean - claim.arrays["mean"])) <= bound + 1e-9


def test_a_linear_field_attracts_everything():
    A = np.array([[-1.0, 0.5], [0.0, -2.0]])
    of = CertificationProblem((gt.Parameters(A=A, noise=np.eye(2)),))
    claim = claims(of, "local-stability")[0]
    check(of, claim)
    said = rule(claim.rule).state(of, claim)
    assert (said.verdict, said.scope) == (Verdict.CONVERGES, Scope.EVERY_START)
    assert "every covariance" in said.text
    endless = {"radius": float("inf"), "reach": float("inf")}
    (other,) = claims(problem("mean"), "local-stability")
    with pytest.raises(Refuted, match="attracts without bound"):
        check(problem("mean"), replace(other, numbers={**other.numbers, **endless}))
    with pytest.raises(Refuted, match="on the cubic term"):
        check(problem("mean"), replace(other, numbers={**other.numbers, **endless, "cubic": 0.0}))


def test_zero_attracts_where_a_is_hurwitz():
    of = CertificationProblem((gt.Parameters(A=[[-1.0]], V=[[1.0]], B=[[1.0]]),))
    (claim,) = claims(of, "local-stability")
    check(of, claim)
    assert claim.numbers["rank"] == 0
    assert claim.numbers["reach"] == pytest.approx(1.0, rel=1e-5)  # s' = -2 s + 2 s²


# -- tampering -------------------------------------------------------------------------------


def tampered(claim: Claim, name: str, value: float) -> Claim:
    return replace(claim, numbers={**claim.numbers, name: value})


TAMPERED = [
    ("local-stability", "nonsymmetric", "rate", 1.01),
    ("local-stability", "nonsymmetric", "cubic", 0.9),
    ("local-stability", "nonsymmetric", "radius", 1.1),
    ("local-stability", "nonsymmetric", "reach", 1.1),
    ("local-stability", "nonsymmetric", "error", 1e-5),
    ("local-stability", "nonsymmetric", "rank", 0.5),
    ("local-stability", "nonsymmetric", "rank", 2.0),
    ("local-stability", "rank lost", "rank", 2.0),
    ("mean-stability", "mean", "mean rate", 1.2),
    ("mean-stability", "mean", "gain", 0.9),
    ("mean-stability", "mean", "drive", 0.9),
    ("mean-stability", "mean", "mean error", 1e-6),
    ("mean-stability", "mean", "rate", 1.01),
    ("unstable-equilibrium", "cycle", "count", 1.5),
    ("unstable-equilibrium", "cycle", "error", 1e-6),
    ("unstable-equilibrium", "cycle", "error", 1e14),
    ("unstable-equilibrium", "bistable", "count", 2.0),
]


@pytest.mark.parametrize(("kind", "name", "number", "factor"), TAMPERED)
def test_tampered_numbers_are_refuted(kind, name, number, factor):
    of = problem(name)
    claim = claims(of, kind)[0]
    with pytest.raises(Refuted):
        check(of, tampered(claim, number, factor * claim.numbers[number]))


@pytest.mark.parametrize("kind", ["local-stability", "mean-stability", "unstable-equilibrium"])
def test_spoilt_data_are_refuted_without_traceback(kind):
    of = problem({"unstable-equilibrium": "cycle"}.get(kind, "mean"))
    claim = claims(of, kind)[0]
    for name in claim.numbers:
        for value in (float("nan"), -1.0, 1e300):
            if (name, value) in {("cubic", 1e300), ("gain", 1e300), ("drive", 1e300)}:
                continue  # a looser bound is true, if useless
            if name == "mean error" and value == 1e300:
                continue
            with pytest.raises(Refuted):
                check(of, tampered(claim, name, value))
        left = {k: v for k, v in claim.numbers.items() if k != name}
        with pytest.raises(Refuted, match="number"):
            check(of, replace(claim, numbers=left))
    for name, value in claim.arrays.items():
        zero, missing = np.zeros_like(value), np.full_like(value, np.nan)
        for wrong in (zero, missing, value[..., :-1], value.astype(np.float32)):
            with pytest.raises(Refuted):
                check(of, replace(claim, arrays={**claim.arrays, name: wrong}))
        with pytest.raises(Refuted, match="missing"):
            check(of, replace(claim, arrays={k: v for k, v in claim.arrays.items() if k != name}))


@pytest.mark.parametrize("kind", ["local-stability", "mean-stability"])
def test_another_equilibrium_or_mean_is_refuted(kind):
    of = problem("mean")
    claim = claims(of, kind)[0]
    for name in ("frame", "mean"):
        if name not in claim.arrays:
            continue
        moved = claim.arrays[name] * (1 + 1e-6)
        with pytest.raises(Refuted):
            check(of, replace(claim, arrays={**claim.arrays, name: moved}))


def test_claims_do_not_carry_over_to_other_parameters_or_families():
    of = problem("nonsymmetric")
    (claim,) = claims(of, "local-stability")
    p = of.parameters
    other = gt.Parameters(A=p.A * (1 + 1e-9), B=p.B, V=p.V)
    with pytest.raises(Refuted):
        check(CertificationProblem((other,)), claim)
    transposed = gt.Parameters(A=p.A, B=p.B.T, V=p.V)
    with pytest.raises(Refuted):
        check(CertificationProblem((transposed,)), claim)
    with pytest.raises(Refuted, match="family"):
        check(CertificationProblem((p, other)), claim)
    noisy = gt.Parameters(A=p.A, B=p.B, V=p.V, noise=0.01 * np.eye(2))
    with pytest.raises(Refuted):
        check(CertificationProblem((noisy,)), claim)


def test_a_stable_equilibrium_is_not_said_to_repel():
    of = problem("nonsymmetric")
    e = gt.equilibria(of.parameters)[0]
    numbers = {"rank": 2.0, "error": 1e-9, "count": 1.0}
    R = frame(np.linalg.cholesky(e.covariance))
    field = Quadratic.of(of.parameters).changed(R)
    J = field.linearisation(np.eye(2))
    for form in (np.eye(3), -np.eye(3), np.linalg.inv(J)):
        arrays = {"frame": R, "form": form, "directions": np.eye(3)[:, :1].copy()}
        with pytest.raises(Refuted):
            check(of, Claim("unstable-equilibrium", numbers=numbers, arrays=arrays))


def test_no_claims_beyond_the_largest_dimension_or_for_families():
    large = gt.Parameters(A=-np.eye(11))
    assert list(find(CertificationProblem((large,)))) == []
    p = problem("mean").parameters
    assert list(find(CertificationProblem((p, p)))) == []


@pytest.mark.parametrize("scale", [1e8, 1e-8])
def test_unscaled_data(scale):
    """Tokens in other units, time in other units: proved all the same."""
    p = problem("nonsymmetric").parameters
    for made in (
        gt.Parameters(A=p.A, V=p.V, B=p.B * scale),
        gt.Parameters(A=p.A * scale, V=p.V, B=p.B * scale),
    ):
        of = CertificationProblem((made,))
        (claim,) = claims(of, "local-stability")
        check(of, claim)


# -- arithmetic ------------------------------------------------------------------------------


def test_balls_of_symmetric_maps_agree_with_floats():
    rng = np.random.default_rng(0)
    A, S = rng.standard_normal((2, 3, 3))
    V, B = rng.standard_normal((2, 2, 3, 3))
    S = S + S.T
    field = Quadratic(A, V, B, np.zeros((3, 3)))
    heads = [(balls.balls(v), balls.balls(b)) for v, b in zip(V, B, strict=True)]
    J = balls.middle(linearisation(balls.balls(A), heads, balls.balls(S)))
    np.testing.assert_allclose(J, field.linearisation(S), rtol=1e-12, atol=1e-12)
    s = in_coordinates(balls.balls(S))
    np.testing.assert_allclose(balls.middle(s)[:, 0], coordinates(S), rtol=1e-15)
    np.testing.assert_allclose(balls.middle(matrix_of(s, 3)), S, rtol=1e-14)


def test_bounds_on_the_quadratic_part_hold():
    rng = np.random.default_rng(1)
    V, B = rng.standard_normal((2, 2, 2, 2))
    field = Quadratic(np.zeros((2, 2)), V, B, np.zeros((2, 2)))
    heads = [(balls.balls(v), balls.balls(b)) for v, b in zip(V, B, strict=True)]
    G, K = rng.standard_normal((2, 3, 3))
    ball_G, ball_K = balls.balls(G), balls.balls(K)
    bilinear, even = curvature(heads, 2, ball_G, ball_G.inv())
    cubic = weighted_cubic(even, ball_K.inv())
    inverse, seen = np.linalg.inv(G), 0.0
    for _ in range(2000):
        y, z = rng.standard_normal((2, 3))
        Ty = G @ (field.tensor @ (inverse @ y) @ (inverse @ z))
        assert np.linalg.norm(Ty) <= bilinear * np.linalg.norm(y) * np.linalg.norm(z)
        Tyy = G @ (field.tensor @ (inverse @ y) @ (inverse @ y))
        ratio = abs(y @ Tyy) / (np.linalg.norm(y) * np.linalg.norm(K @ y) ** 2)
        assert ratio <= cubic
        seen = max(seen, ratio / cubic)
    assert seen > 0.3  # not absurdly loose


def test_norm_bounds_are_bounds_and_tight():
    rng = np.random.default_rng(2)
    for shape in ((3, 3), (2, 5), (5, 2)):
        M = rng.standard_normal(shape)
        bound = norm_bound(balls.balls(M))
        assert bound >= np.linalg.norm(M, 2) * (1 - 1e-15)
        assert bound <= np.linalg.norm(M, 2) * (1 + 1e-9)
        assert frobenius_bound(balls.balls(M)) == pytest.approx(np.linalg.norm(M), rel=1e-14)
    assert norm_bound(balls.balls(np.zeros((2, 2)))) == 0.0


@pytest.mark.parametrize("offset", [1e-3, 1e-6, 1e-10])
def test_newton_and_kantorovich_enclose_a_root(offset):
    """f(x) = x² - 2 near √2: the radius holds the distance and is not much larger."""
    x = float(mp.sqrt(2)) + offset
    with balls.precision(128):
        value = balls.balls(np.array([[x]])) * balls.balls(np.array([[x]])) - balls.balls(
            np.array([[2.0]])
        )
        radius = zero_radius(BallMatrix(value), enclose(np.array([[2 * x]])), [1.0])
    true = abs(mp.mpf(x) - mp.sqrt(2))
    assert true <= radius <= 2.5 * offset


def test_no_root_is_no_radius():
    value, slope = enclose(np.array([[1.0]])), enclose(np.array([[0.0]]))
    assert zero_radius(value, slope, [1.0]) == float("inf")
    # x² + 1 at x = 0.1: the derivative is invertible, but there is no real root.
    value, slope = enclose(np.array([[1.01]])), enclose(np.array([[0.2]]))
    assert zero_radius(value, slope, [1.0]) == float("inf")


@pytest.mark.parametrize("name", ["rank lost", "bistable", "scalar value"])
def test_equilibria_of_every_rank_exist_exactly(name):
    """Also those that repel: the factor equation has an exact solution near the computed one."""
    p = problem(name).parameters
    for e in gt.equilibria(p):
        L = np.linalg.svd(e.covariance)[0][:, : e.rank]
        L = L * np.sqrt(np.linalg.svd(e.covariance)[1][: e.rank])
        with balls.precision(128):
            R = balls.balls(frame(L))
            inverse = R.inv()
            A = inverse * balls.balls(p.A) * R
            heads = [
                (inverse * balls.balls(V) * R, R.transpose() * balls.balls(B) * R)
                for V, B, _ in p.heads
            ]
            assert factor_radius(A, heads, e.rank) < 1e-9
            if e.rank:
                # Nothing is there after a small push.
                pushed = balls.balls(np.diag([1.0 + 1e-2, 1.0]))
                moved = pushed.inv() * A * pushed
                shoved = [(pushed.inv() * V * pushed, pushed * B * pushed) for V, B in heads]
                assert factor_radius(moved, shoved, e.rank) > 1e-3
