"""Cones around rays at infinity: the theorem against the flow, its data against tampering."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from scipy.integrate import solve_ivp

import gtcontrol as gt
from gtcontrol.arithmetic import balls
from gtcontrol.arithmetic.floats import Enclosure, exact
from gtcontrol.arithmetic.matrices import BallMatrix, FloatMatrix, block, enclose
from gtcontrol.arithmetic.newton import has_zero
from gtcontrol.certification.rules import rule
from gtcontrol.certification.rules.base import Refuted, Scope
from gtcontrol.certification.rules.ray_blow_up import time_left
from gtcontrol.certification.search import rays
from gtcontrol.certification.theory.infinity import expand
from gtcontrol.problem.definitions import CertificationProblem
from gtcontrol.status import Verdict

from .strategies import generators, invertible

CONE, RAY = rule("ray-cone"), rule("ray")


def problem(parameters, factor=None):
    start = None if factor is None else gt.Gaussian(np.zeros(parameters.dim), factor)
    return CertificationProblem((parameters,), start)


def claim_of(asked):
    """The one claim of the search, which must be proved."""
    claims = list(rays.find(asked))
    for claim in claims:
        rule(claim.rule).check(asked, claim)
    assert len(claims) <= 1
    return claims[0] if claims else None


def draw(rng, n, heads=None, noise=False):
    lead = () if heads is None else (heads,)
    Q = rng.standard_normal((n, n))
    return gt.Parameters(
        A=rng.standard_normal((n, n)),
        B=rng.standard_normal((*lead, n, n)),
        V=rng.standard_normal((*lead, n, n)),
        noise=Q @ Q.T if noise else None,
    )


def attracting(rng, n, heads=None, noise=False):
    """Parameters of which the search certifies a cone, and the claim."""
    for _ in range(40):
        p = draw(rng, n, heads, noise)
        claim = claim_of(problem(p))
        if claim is not None and claim.rule == "ray-cone":
            return p, claim
    raise AssertionError("no attracting ray in 40 draws")


def covariance_rate(p, S):
    M = p.A + sum(V @ S @ B for V, B, _ in p.heads)
    noise = 0.0 if p.noise is None else p.noise
    return M @ S + S @ M.T + noise


def inside(rng, claim, rank, depth=1.0):
    """Factor of a random covariance in the cone, on its boundary if depth is 1."""
    H, n = claim.arrays["coordinates"], len(claim.arrays["coordinates"])
    # Some cones reach down to 0, where growth takes long.
    y = max(claim.numbers["least"], 0.01) * math.exp(rng.exponential()) * (1 + 1e-9)
    X = rng.standard_normal((n, rank))
    X[0] *= math.sqrt(y) / np.linalg.norm(X[0])
    X[1:] *= math.sqrt(claim.numbers["ratio"] * y) / max(np.linalg.norm(X[1:]), 1e-300)
    X[1:] *= depth * (1 - 1e-9)
    return np.linalg.solve(H, X)


def blow_up_time(p, L, upper):
    """Blow-up time by an integration in rescaled time, dt = dτ/(1 + tr S), of S itself."""
    n = p.dim

    def rate(_, state):
        S = state[:-1].reshape(n, n)
        speed = 1 + np.trace(S)
        return np.append((covariance_rate(p, S) / speed).ravel(), 1 / speed)

    def gone(_, state):
        return np.trace(state[:-1].reshape(n, n)) - 1e10 * scale

    gone.terminal = True
    S = L @ L.T
    scale = max(np.trace(S), 1.0)
    found = solve_ivp(
        rate, (0, 1e6), np.append(S.ravel(), 0.0), "DOP853", rtol=1e-10, atol=1e-12, events=gone
    )
    assert found.status == 1, "the trace did not grow"
    assert found.y[-1, -1] < upper * 2 + 1
    return found.y[-1, -1]


# -- matrices ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [lambda M: BallMatrix(balls.balls(M)), lambda M: FloatMatrix(exact(M))]
)
@given(rng=generators(), rows=st.integers(1, 6), columns=st.integers(1, 6))
@settings(max_examples=25, deadline=None)
def test_norms_and_eigenvalues_are_bounded_from_above_and_closely(make, rng, rows, columns):
    M = rng.standard_normal((rows, columns))
    norm = np.linalg.norm(M, 2)
    assert norm * (1 - 1e-12) <= make(M).norm() <= norm * (1 + 1e-6)
    assert make(M).size() >= norm * (1 - 1e-12)
    square = M @ M.T - np.ones((rows, rows)) + np.tri(rows)
    top = np.linalg.eigvalsh(0.5 * (square + square.T))[-1]
    assert top - 1e-12 <= make(square).top() <= top + 1e-6


@pytest.mark.parametrize("order", [2, 5, 30])
def test_both_kinds_of_matrices_enclose_the_same_products(order):
    rng = np.random.default_rng(order)
    A, B, c = rng.standard_normal((order, order)), invertible(rng, order), rng.standard_normal(1)
    made = []
    for make in (lambda M: BallMatrix(balls.balls(M)), lambda M: FloatMatrix(exact(M))):
        X, Y, z = make(A), make(B), balls.ball(c[0])
        one, every = slice(0, 1), slice(None)
        combined = X.combination([z, z], [A, B])
        made.append(
            [
                (X @ Y.inverse() - X.T.times(z)).middle,
                combined.middle,
                X.part(slice(0, 1), slice(1, None)).middle,
                block(
                    [[X.part(every, slice(1, 2)), X], [Y.part(one, one), Y.part(one, every)]]
                ).middle,
            ]
        )
    assembled = np.block([[A[:, 1:2], A], [B[:1, :1], B[:1]]])
    expected = [A @ np.linalg.inv(B) - c * A.T, c * (A + B), A[:1, 1:], assembled]
    for first, second, third in zip(*made, expected, strict=True):
        np.testing.assert_allclose(first, third, atol=1e-10)
        np.testing.assert_allclose(second, third, atol=1e-10)


@given(rng=generators(), n=st.integers(1, 12))
@settings(max_examples=25, deadline=None)
def test_the_inverse_in_floats_encloses_the_exact_one(rng, n):
    M = invertible(rng, n, spread=3.0)
    made = FloatMatrix(exact(M)).inverse().value
    with mpmath.workdps(40):
        true = mpmath.matrix(M.tolist()) ** -1
        error = [
            abs(mpmath.mpf(made.middle[i, j]) - true[i, j]) <= made.radius[i, j]
            for i in range(n)
            for j in range(n)
        ]
    assert all(error)
    assert np.max(made.radius) < 1e-10


@pytest.mark.parametrize("quick", [True, False])
def test_long_products_enclose_the_exact_ones(quick):
    """Entry by entry in fractions, for factors anywhere within their own errors."""
    rng = np.random.default_rng(0)
    n, terms = 4, 260
    A, B = rng.standard_normal((n, terms)), rng.standard_normal((terms, n))
    for spread in (0.0, 1e-10):
        left = FloatMatrix(Enclosure(A, np.full(A.shape, spread)), quick=quick)
        right = FloatMatrix(Enclosure(B, np.full(B.shape, spread)), quick=quick)
        made = (left @ right).value
        assert np.max(made.radius) < 1e-10 + 1e3 * spread
        for move in (-1, 1):
            X, Y = A + 0.99 * move * spread * np.sign(A), B + 0.99 * spread * np.sign(B)
            for i in range(n):
                for j in range(n):
                    pairs = zip(X[i].tolist(), Y[:, j].tolist(), strict=True)
                    true = sum(Fraction(x) * Fraction(y) for x, y in pairs)
                    assert abs(true - Fraction(made.middle[i, j])) <= Fraction(made.radius[i, j])


def test_what_is_singular_has_no_inverse():
    M = np.ones((3, 3))
    assert BallMatrix(balls.balls(M)).inverse() is None
    assert FloatMatrix(exact(M)).inverse() is None


@pytest.mark.parametrize("rank", [3, 300])
def test_the_norm_of_a_product_with_low_rank_is_sharp(rank):
    rng = np.random.default_rng(0)
    d = 340
    inner = rng.standard_normal((d, rank)) @ rng.standard_normal((rank, d))
    left, right = np.eye(d)[1:], invertible(rng, d)
    exactly = np.linalg.norm(left @ inner @ right, 2)
    outer = np.linalg.norm(right, 2) * 1.0001
    bound = enclose(left, d).product_norm(inner, enclose(right), outer)
    # Thin factors are bounded one by one: ‖X‖ ‖Y right‖ loses little, as X is orthonormal.
    assert exactly * (1 - 1e-10) <= bound <= 1.05 * exactly
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    bound = enclose(left, d).product_norm(inner, enclose(rotation), 1.0001)
    assert bound >= np.linalg.norm(left @ inner @ rotation, 2) * (1 - 1e-10)


def test_a_root_is_proved_only_where_there_is_one():
    # F(f) = r + f + f²: roots (-1 ± √(1 - 4r))/2 are real for r <= 1/4.
    def proved(r, radius):
        return has_zero(enclose(np.array([[r]])), enclose(np.eye(1)), (1.0, 0.0, 0.0), radius)

    assert proved(0.2, 0.28)  # |f| = 0.2764
    assert not proved(0.2, 0.2763)
    assert proved(0.2499, 0.5)
    assert not any(proved(0.26, radius) for radius in np.geomspace(1e-6, 10, 200))
    assert not proved(0.2, math.inf)
    assert not has_zero(enclose(np.ones((2, 1))), enclose(np.ones((2, 2))), (0, 0, 0), 1.0)


# -- the expansion ----------------------------------------------------------------------------


@given(rng=generators(), n=st.integers(1, 5), heads=st.integers(1, 3), noise=st.booleans())
@settings(max_examples=150, deadline=None)
def test_the_expansion_bounds_the_flow(rng, n, heads, noise):
    """ρ' and y' of random covariances of any rank, anywhere, by the chain rule in coordinates."""
    p = draw(rng, n, heads, noise)
    H = invertible(rng, n, 0.7)
    with balls.precision(128):
        e = expand(p, H)
    for _ in range(6):
        X = rng.standard_normal((n, rng.integers(1, n + 1)))
        X[1:] *= 10.0 ** rng.uniform(-3, 1)
        X *= 10.0 ** rng.uniform(-1, 2)
        moved = X @ X.T
        G = np.linalg.inv(H)
        rate = H @ covariance_rate(p, G @ moved @ G.T) @ H.T
        y, z = moved[0, 0], np.trace(moved) - moved[0, 0]
        dy, dz = rate[0, 0], np.trace(rate) - rate[0, 0]
        spreading = 0.5 * (dz - z / y * dy) / y**2
        s = math.sqrt(z / y)
        scale = np.sum(np.abs(rate)) * (1 + s * s) / y**2
        assert spreading <= e.spreading(s, 1 / y) + 1e-9 * scale
        assert dy >= e.growth(s) * y**2 - e.drag(s) * y - 1e-9 * scale * y**2


@given(rng=generators(), n=st.integers(2, 5), heads=st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_the_linear_part_is_the_derivative_on_the_sphere(rng, n, heads):
    """F(f) = [N(v)]₂ - f [N(v)]₁ of rank one: value, derivative and remainder."""
    p = draw(rng, n, heads)
    H = invertible(rng, n, 0.7)
    G = np.linalg.inv(H)
    with balls.precision(128):
        flow = expand(p, H).linear

    def field(f):
        v = G @ np.append(1.0, f)
        image = H @ sum((v @ B @ v) * (V @ v) for V, B, _ in p.heads)
        return image[1:] - f * image[0]

    r, J = flow.residual.middle[:, 0], flow.jacobian.middle
    np.testing.assert_allclose(r, field(np.zeros(n - 1)), atol=1e-9)
    f = rng.standard_normal(n - 1) * 10.0 ** rng.uniform(-4, 1)
    size = np.linalg.norm(f)
    rest = np.linalg.norm(field(f) - r - J @ f)
    second, third, fourth = flow.remainder
    assert rest <= second * size**2 + third * size**3 + fourth * size**4 + 1e-9 * (1 + size**4)


def test_floats_and_balls_expand_alike():
    rng = np.random.default_rng(3)
    p, H = draw(rng, 6, 2, noise=True), invertible(rng, 6, 0.5)
    small = gt.Parameters(**{k: getattr(p, k) for k in ("A", "V", "B", "noise")})
    padded = np.zeros((2, 30, 30))
    big = {}
    for key in ("A", "V", "B", "noise"):
        value = getattr(p, key)
        made = np.zeros((*value.shape[:-2], 30, 30))
        made[..., :6, :6] = value
        big[key] = made
    assert padded.shape == big["V"].shape
    wide = np.eye(30)
    wide[:6, :6] = H
    with balls.precision(128):
        one, other = expand(small, H), expand(gt.Parameters(**big), wide)
    for name in ("rate", "residual", "slope", "push", "pull", "drift", "noise", "fifth"):
        assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-9, abs=1e-12), name
    # Larger matrices are bounded more coarsely, never below.
    assert other.third >= one.third * (1 - 1e-9)
    assert other.bend >= one.bend * (1 - 1e-9)
    assert other.contraction <= one.contraction + 1e-9


# -- every start in the cone blows up in time --------------------------------------------------


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize(
    ("n", "heads"), [(2, None), (3, None), (4, None), (5, None), (2, 2), (3, 3)]
)
def test_every_start_in_the_cone_blows_up_before_the_bound(n, heads, noise):
    rng = np.random.default_rng(10 * n + noise)
    ratios = []
    for _ in range(3):
        p, cone = attracting(rng, n, heads, noise)
        for rank in sorted({1, n}):
            L = inside(rng, cone, rank, rng.choice([0.2, 1.0]))
            asked = problem(p, L)
            claim = claim_of(asked)
            assert claim is not None
            stated = CONE.state(asked, claim)
            assert stated.verdict is Verdict.BLOWS_UP
            assert stated.scope is Scope.THIS_START
            true = blow_up_time(p, L, stated.upper)
            assert true <= stated.upper * (1 + 1e-6)
            ratios.append(stated.upper / true)
    assert np.median(ratios) < 4


def test_the_bound_is_sharp_near_the_blow_up():
    """The relative error of the time left falls with the square of the distance, or faster."""
    rng = np.random.default_rng(1)
    p, cone = attracting(rng, 3)
    H = cone.arrays["coordinates"]
    errors = []
    for factor in (10.0, 1e3, 1e5):
        u = np.linalg.solve(H, np.eye(3)[0])
        L = (math.sqrt(factor * cone.numbers["least"]) * u)[:, None]
        claim = claim_of(problem(p, L))
        true = blow_up_time(p, L, claim.numbers["time"])
        errors.append(claim.numbers["time"] / true - 1)
    assert -1e-6 < errors[2] < 1e-3
    assert errors[2] < errors[1] < errors[0]


def test_one_dimension_is_exact():
    # s' = 2 a s + 2 v b s²: T = ln(1 + a/(v b s))/(2a).
    p = gt.Parameters(A=[[0.5]], V=[[1.0]], B=[[1.0]])
    claim = claim_of(problem(p, [[1.0]]))
    assert claim.numbers["time"] == pytest.approx(math.log(1.5), rel=1e-10)
    p = gt.Parameters(A=[[-1.0]], V=[[1.0]], B=[[1.0]])
    claim = claim_of(problem(p, [[math.sqrt(2.0)]]))
    assert claim.numbers["time"] == pytest.approx(math.log(2) / 2, rel=1e-9)
    # s = 1 is an equilibrium: no claim about it, but about what lies above.
    claim = claim_of(problem(p, [[1.0]]))
    assert "time" not in claim.numbers
    assert claim.numbers["least"] == pytest.approx(1.0, rel=1e-6)
    assert claim_of(problem(gt.Parameters(A=[[1.0]], V=[[1.0]], B=[[-1.0]]))) is None


def test_known_blow_up_times():
    # Rank one, A = 0: T = 1/2 for L = e₁; a stationary ray elsewhere.
    p = gt.Parameters(V=[[1.0, 1.0], [0.0, 2.0]], B=[[1.0, 2.0], [0.0, 0.5]])
    L = np.array([[2.0], [2.0]])  # the eigenvector of V for 2: (1, 1), uᵀBu > 0
    claim = claim_of(problem(p, L))
    weight = float(L[:, 0] @ p.B @ L[:, 0])
    assert claim.numbers["time"] == pytest.approx(1 / (4 * weight), rel=1e-9)
    # Two heads on orthogonal rays: s₁₁' = 2 s₁₁², s₂₂' = 4 s₂₂².
    V, B = [np.diag([1.0, 0.0]), np.diag([0.0, 1.0])], [np.eye(2), 2 * np.eye(2)]
    p = gt.Parameters(V=V, B=B)
    claim = claim_of(problem(p, np.diag([0.05, 1.0])))
    assert 0.25 <= claim.numbers["time"] < 0.27


def test_indefinite_scores_get_a_verdict():
    """B_s = diag(1, -1), out of reach of quadratic certificates: V = diag(2, 1) attracts to e₁."""
    p = gt.Parameters(A=[[0.1, 0.3], [-0.2, 0.1]], V=np.diag([2.0, 1.0]), B=np.diag([1.0, -1.0]))
    claim = claim_of(problem(p))
    assert claim.rule == "ray-cone"
    stated = CONE.state(problem(p), claim)
    assert stated.verdict is Verdict.BLOW_UP_DATA_EXIST
    assert stated.upper == math.inf
    assert "every S with" in stated.text
    # V = I: the ray does not attract, but exists.
    p = gt.Parameters(A=[[-1.0, 0.3], [-0.2, 0.1]], V=np.eye(2), B=np.diag([1.0, -1.0]))
    claim = claim_of(problem(p))
    assert claim.rule == "ray"
    assert "ray" in claim.arrays
    assert RAY.state(problem(p), claim).verdict is Verdict.BLOW_UP_DATA_EXIST
    # No ray grows: V u = ν u with ν uᵀBu < 0 for both.
    assert claim_of(problem(gt.Parameters(V=np.diag([1.0, -1.0]), B=np.diag([-1.0, 1.0])))) is None


def test_nothing_is_claimed_without_heads():
    assert claim_of(problem(gt.Parameters(A=np.eye(2)))) is None
    assert claim_of(problem(gt.Parameters(A=np.eye(2), V=np.eye(2)))) is None
    J = np.array([[0.0, -1.0], [1.0, 0.0]])
    assert claim_of(problem(gt.Parameters(A=np.eye(2), V=J, B=np.eye(2)))) is None


def test_a_family_is_refused():
    rng = np.random.default_rng(1)
    p, claim = attracting(rng, 2)
    family = CertificationProblem((p, p))
    assert list(rays.find(family)) == []
    with pytest.raises(Refuted, match="family"):
        CONE.check(family, claim)


@pytest.mark.parametrize("unit", [1e-8, 1e8])
@pytest.mark.parametrize("which", ["V", "B", "A", "time"])
def test_units_do_not_matter(which, unit):
    rng = np.random.default_rng(4)
    p, cone = attracting(rng, 3)
    L = inside(rng, cone, 2, 0.5)
    before = claim_of(problem(p, L)).numbers["time"]
    A, V, B, clock = p.A, p.V, p.B, 1.0
    if which == "time":
        A, V, clock = A * unit, V * unit, 1 / unit
    elif which == "A":  # S scales with A and time against it
        A, L, clock = A * unit, L * math.sqrt(unit), 1 / unit
    elif which == "V":
        V, L = V * unit, L / math.sqrt(unit)
    else:
        B, L = B * unit, L / math.sqrt(unit)
    after = claim_of(problem(gt.Parameters(A=A, V=V, B=B), L)).numbers["time"]
    assert after == pytest.approx(before * clock, rel=1e-3)


# -- rays that do not attract -------------------------------------------------------------------


def test_a_ray_that_does_not_attract_is_proved_to_exist():
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(30):
        p = draw(rng, 4, heads=int(rng.integers(1, 3)))
        claim = claim_of(problem(p))
        if claim is None or claim.rule == "ray-cone":
            continue
        found += 1
        u = np.linalg.solve(claim.arrays["coordinates"], np.eye(4)[0])
        u /= np.linalg.norm(u)
        image = sum((u @ B @ u) * (V @ u) for V, B, _ in p.heads)
        assert u @ image > 0
        assert np.linalg.norm(image - (u @ image) * u) < 1e-8
        for change in (
            replace(claim, numbers={"radius": 1e-30}),
            replace(claim, numbers={"radius": 1e3}),
            replace(claim, numbers={"radius": math.nan}),
            replace(claim, numbers={}),
            replace(claim, arrays={"coordinates": claim.arrays["coordinates"] + 0.1 * np.eye(4)}),
            replace(claim, arrays={"coordinates": np.zeros((4, 4))}),
            replace(claim, arrays={"ray": u}),
        ):
            with pytest.raises(Refuted):
                RAY.check(problem(p), change)
        noisy = gt.Parameters(A=p.A, V=p.V, B=p.B, noise=np.eye(4))
        with pytest.raises(Refuted, match="noise"):
            RAY.check(problem(noisy), claim)
    assert found >= 3


def test_an_exact_ray_is_checked_exactly():
    p = gt.Parameters(V=np.diag([1.0, 1.0, -2.0]), B=np.diag([1.0, -3.0, 1.0]))
    good = gt.results.claims.Claim("ray", arrays={"ray": np.array([3.0, 0.0, 0.0])})
    RAY.check(problem(p), good)
    assert "u = (3, 0, 0)" in RAY.state(problem(p), good).text
    for ray, why in (
        ([0.0, 1.0, 0.0], "positive multiple"),
        ([0.0, 0.0, 1.0], "positive multiple"),
        ([1.0, 0.0, 1e-30], "exactly"),
        ([0.0, 0.0, 0.0], "zero"),
    ):
        with pytest.raises(Refuted, match=why):
            RAY.check(problem(p), replace(good, arrays={"ray": np.array(ray)}))


# -- tampering ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certified():
    rng = np.random.default_rng(8)
    p, cone = attracting(rng, 3)
    L = inside(rng, cone, 2, 0.3)
    asked = problem(p, L)
    return asked, claim_of(asked), cone


def tampered(claim, **numbers):
    return replace(claim, numbers={**claim.numbers, **numbers})


@pytest.mark.parametrize(
    ("name", "factor"),
    [("time", 0.99), ("growth", 1.01), ("least", 0.9), ("ratio", 30.0), ("ratio", 1e-9)],
)
def test_a_better_number_is_refuted(certified, name, factor):
    asked, claim, _ = certified
    with pytest.raises(Refuted):
        CONE.check(asked, tampered(claim, **{name: claim.numbers[name] * factor}))


def test_a_larger_cone_or_an_earlier_one_is_refuted(certified):
    asked, _, cone = certified
    bare = problem(asked.parameters)
    CONE.check(bare, cone)
    for name, factor in (("least", 0.5), ("ratio", 20.0), ("growth", 1.001)):
        with pytest.raises(Refuted):
            CONE.check(bare, tampered(cone, **{name: cone.numbers[name] * factor}))
    with pytest.raises(Refuted, match="for a from"):
        CONE.check(bare, tampered(cone, drag=cone.numbers["drag"] - 1e-3))


@pytest.mark.parametrize("name", ["ratio", "least", "growth", "drag", "time"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_numbers_that_are_none_are_refuted(certified, name, value):
    asked, claim, _ = certified
    with pytest.raises(Refuted):
        CONE.check(asked, tampered(claim, **{name: value}))


@pytest.mark.parametrize("name", ["ratio", "least", "growth", "time"])
def test_numbers_must_be_positive(certified, name):
    asked, claim, _ = certified
    for value in (0.0, -1.0):
        with pytest.raises(Refuted, match="must be positive"):
            CONE.check(asked, tampered(claim, **{name: value}))


def test_other_coordinates_are_refuted(certified):
    asked, claim, _ = certified
    H = claim.arrays["coordinates"]
    for i in range(3):
        for j in range(3):
            other = H.copy()
            other[i, j] += 0.5 * np.max(np.abs(H))
            with pytest.raises(Refuted):
                CONE.check(asked, replace(claim, arrays={"coordinates": other}))
    for other in (np.zeros((3, 3)), H[:2], H[:, 0], np.full((3, 3), np.nan), H.astype(np.float32)):
        with pytest.raises(Refuted):
            CONE.check(asked, replace(claim, arrays={"coordinates": other}))
    with pytest.raises(Refuted, match="missing"):
        CONE.check(asked, replace(claim, arrays={}))


def test_other_starts_and_parameters_are_refuted(certified):
    asked, claim, _ = certified
    p, L = asked.parameters, asked.start.factor
    for factor in (0.5 * L, L[:, ::-1] @ np.diag([1.0, 1.0]) + np.ones((3, 2)) * np.max(np.abs(L))):
        with pytest.raises(Refuted, match="the start has"):
            CONE.check(problem(p, factor), claim)
    with pytest.raises(Refuted, match="no start"):
        CONE.check(problem(p), claim)
    for other in (
        gt.Parameters(A=p.A, V=-p.V, B=p.B),
        gt.Parameters(A=p.A, V=p.V.T, B=p.B),
        gt.Parameters(A=p.A - 10 * np.eye(3), V=p.V, B=p.B),
        gt.Parameters(A=p.A, V=p.V, B=p.B, noise=1e4 * claim.numbers["least"] * np.eye(3)),
    ):
        with pytest.raises(Refuted):
            CONE.check(problem(other, L), claim)


def test_the_words_hold_what_was_checked(certified):
    asked, claim, cone = certified
    text = CONE.state(asked, claim).text
    assert "blows up before t = " in text
    written = float(text.split("before t = ")[1].split(". ")[0])
    assert claim.numbers["time"] <= written <= claim.numbers["time"] * (1 + 1e-5)
    text = CONE.state(problem(asked.parameters), cone).text
    assert float(text.split(">= ")[1].split()[0]) >= cone.numbers["least"]
    assert float(text.split("<= ")[1].split()[0]) <= cone.numbers["ratio"]


# -- restart ------------------------------------------------------------------------------------


@given(rng=generators(), n=st.integers(2, 4))
@settings(max_examples=8, deadline=None)
def test_a_later_covariance_gets_a_bound_on_the_time_left(rng, n):
    p = draw(rng, n)
    claim = claim_of(problem(p))
    assume(claim is not None and claim.rule == "ray-cone")
    L = inside(rng, claim, n, 0.5)
    made = rays.upper_bound(p, L @ L.T)
    assert made is not None
    with balls.precision(128):
        S = enclose(L) @ enclose(L).T
        bound = time_left(p, made, S)
        assert bound <= made.numbers["time"] * (1 + 1e-9)
        with pytest.raises(Refuted, match="the start has"):
            time_left(p, made, enclose(1e-9 * np.eye(n)))
    assert blow_up_time(p, L, bound) <= bound * (1 + 1e-6)


def test_a_covariance_outside_every_cone_gets_no_bound():
    p = gt.Parameters(A=-np.eye(2), V=np.diag([2.0, 1.0]), B=np.eye(2))
    assert rays.upper_bound(p, 1e-3 * np.eye(2)) is None
    assert rays.upper_bound(p, np.zeros((2, 2))) is None


# -- how often, and how fast ---------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_every_attracting_ray_of_one_head_is_certified(n):
    """V, B, A Gaussian, B_s indefinite: a cone if and only if a real ray attracts."""
    rng = np.random.default_rng(n)
    count = 0
    for _ in range(25):
        p = draw(rng, n)
        values, vectors = np.linalg.eig(p.V)
        rays_that_attract = 0
        for i in np.flatnonzero(np.abs(values.imag) < 1e-12):
            u = vectors[:, i].real
            weight = u @ p.B @ u
            others = np.delete(values, i).real - values[i].real
            rays_that_attract += bool(values[i].real * weight > 0 and np.all(others * weight < 0))
        claim = claim_of(problem(p))
        assert (claim is not None and claim.rule == "ray-cone") == (rays_that_attract > 0)
        count += rays_that_attract > 0
    assert 5 <= count <= 20


@pytest.mark.slow
def test_twelve_heads_of_rank_64_in_dimension_768():
    rng = np.random.default_rng(5)
    d = 768
    W = rng.standard_normal((4, 12, 64, d)) / math.sqrt(d)
    u = rng.standard_normal(d)
    W[:, 0, 0] = 3 * u / np.linalg.norm(u)
    A = rng.standard_normal((d, d)) / math.sqrt(d)
    p = gt.Parameters.from_attention(W[0], W[1], W[2], np.swapaxes(W[3], 1, 2), A=A)
    L = 3 * (u / np.linalg.norm(u))[:, None] + 1e-3 * rng.standard_normal((d, 2))
    asked = problem(p, L)
    claims = list(rays.find(asked))
    CONE.check(asked, claims[0])

    def rate(_, state):
        """The factor in rescaled time, with heads as products of thin matrices."""
        X = state[:-1].reshape(d, 2)
        queries, keys, values = (W[k] @ X for k in range(3))
        weights = np.swapaxes(keys, 1, 2) @ queries / 8.0
        moved = A @ X + np.einsum("hrd,hrk->dk", W[3], values @ weights)
        speed = 1 + np.sum(X * X)
        return np.append(moved.ravel() / speed, 1 / speed)

    found = solve_ivp(rate, (0, 1.2), np.append(L.ravel(), 0.0), "DOP853", rtol=1e-8)
    assert found.status == 0
    assert np.sum(found.y[:-1, -1] ** 2) > 1e4 * np.sum(L * L)
    true = found.y[-1, -1]
    assert true < claims[0].numbers["time"] < 1.2 * true
    with pytest.raises(Refuted):
        CONE.check(asked, tampered(claims[0], time=true * 0.999))


def test_the_search_leaves_no_setting_behind():
    rng = np.random.default_rng(2)
    p = draw(rng, 3)
    before, errors = str(balls.identity(1)[0, 0] / 3), np.geterr()
    for _ in rays.find(problem(p)):
        assert str(balls.identity(1)[0, 0] / 3) == before
        assert np.geterr() == errors
