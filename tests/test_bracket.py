"""Proved brackets of the blow-up time against closed forms, integrations, and tampering."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings

import gtcontrol as gt
from gtcontrol.arithmetic import balls, taylor
from gtcontrol.certification.bracket.covariance import CovarianceFlow
from gtcontrol.certification.bracket.directions import find_eigenvectors, find_ray
from gtcontrol.certification.bracket.estimate import estimate_blow_up
from gtcontrol.certification.bracket.plan import order_for, replay
from gtcontrol.certification.bracket.pursuit import draft, pursue
from gtcontrol.certification.bracket.rays import build_cone
from gtcontrol.certification.bracket.reduction import reduced
from gtcontrol.certification.bracket.restart import build_restart
from gtcontrol.certification.bracket.spectral import build_spectral, time_from_below
from gtcontrol.certification.rules.base import Refuted, Scope
from gtcontrol.certification.rules.blow_up_bracket import BlowUpBracket
from gtcontrol.certification.search.bracket import find
from gtcontrol.errors import InvalidNumber, InvalidShape
from gtcontrol.problem.definitions import CertificationProblem
from gtcontrol.results.blow_up import BlowUpStatus
from gtcontrol.status import Verdict
from tests.strategies import factor, generators

I2 = np.eye(2)
J = np.array([[0.0, -1.0], [1.0, 0.0]])
RULE = BlowUpBracket()


def law(S):
    S = np.asarray(S, dtype=float)
    return gt.Gaussian(np.zeros(len(S)), np.diag(np.sqrt(S)) if S.ndim == 1 else S)


G1 = (
    gt.Parameters(A=[[0.1, 0.2], [0, -0.1]], V=[[1, 0.5], [0.2, 0.8]], B=[[1, 0.3], [0, 0.7]]),
    law([1.0, 1.0]),
)
G2 = (
    gt.Parameters(
        A=[[0.2, 0, -0.1], [0.1, -0.2, 0], [0, 0.1, 0.1]],
        V=[[1, 0.5, 0], [0, 0.5, 0.25], [0, 0, 1.5]],
        B=[[1, 0.5, 0], [0, 1, 0], [0.25, 0, 1]],
    ),
    law([1.0, 0.5, 1.0]),
)
G3 = (gt.Parameters(V=np.diag([2.0, -1.0]), B=I2), law([1.0, 1.0]))
HEADS = [np.diag([1.0, 0.0]), np.diag([0.0, 1.0])]
G4 = (gt.Parameters(V=HEADS, B=[I2, 2 * I2]), law([1.0, 1.0]))
G4_OPPOSITE = (gt.Parameters(V=HEADS, B=[I2, -2 * I2]), law([1.0, 1.0]))
D2 = (gt.Parameters(V=I2 + 2 * J, B=-(I2 + 2 * J)), law([1.0, 1.0]))
R3 = (
    gt.Parameters(V=[[1.0, 1.0], [0.0, 2.0]], B=[[1.0, 2.0], [0.0, 0.5]]),
    gt.Gaussian([0, 0], [[1.0], [0.5]]),
)


def in_balls(parameters, start):
    """Bracket by the integration in balls, also where a closed form would answer."""
    p, L = reduced(parameters, start.factor)
    seen = estimate_blow_up(p, L)
    plan, bracket = pursue(p, L, draft(p, L, seen), seen.time)
    assert replay(p, L, plan) == bracket
    return bracket


class TestReferenceCases:
    @pytest.mark.parametrize(
        ("case", "low", "high"),
        [
            pytest.param(G1, 0.36716719866746, 0.36716719866782, id="G1"),
            pytest.param(G2, 0.30178997492226, 0.30178997492527, id="G2"),
            pytest.param(G3, 0.25, 0.25, id="G3"),
            pytest.param(G4, 0.25, 0.25, id="G4"),
            pytest.param(G4_OPPOSITE, 0.5, 0.5, id="G4-opposite"),
            pytest.param(D2, 1 / 6, 1 / 6, id="D2"),
            pytest.param(R3, 0.13806038326269424, 0.13806038326269424, id="R3"),
        ],
    )
    def test_brackets_are_narrow_and_right(self, case, low, high):
        found = gt.blow_up(*case)
        assert found.status is BlowUpStatus.BLOWS_UP
        assert found.proved
        assert found.width < 2e-15
        assert low * (1 - 2e-16) <= found.upper
        assert found.lower <= high * (1 + 2e-16)
        assert found.lower <= found.estimate <= found.upper
        if low < high:  # known to less than what is proved here
            assert low < found.lower
            assert found.upper < high

    @pytest.mark.parametrize(
        ("A", "K", "L", "noise", "digits"),
        [
            pytest.param([[0.5]], [[2.0]], [[1.0]], None, "log(1.5)", id="B1"),
            pytest.param([[0, 1], [0, 0]], I2, I2, None, "0.6955780649209035827", id="B5"),
            pytest.param(
                [[0, 1], [0, 0]], I2, [[0.0], [1.0]], None, "0.81773167388682350609", id="B6"
            ),
            pytest.param([[0.0]], [[1.0]], np.zeros((1, 0)), [[1.0]], "pi/2", id="N1"),
            pytest.param([[0.5]], [[1.0]], np.zeros((1, 0)), [[0.25]], "2", id="N2"),
            pytest.param(
                [[0, 1], [0, 0]], I2, np.zeros((2, 0)), I2, "1.2166954297563273433", id="N3"
            ),
        ],
    )
    def test_the_integration_in_balls_agrees_with_the_closed_form(self, A, K, L, noise, digits):
        known = {"log(1.5)": mpmath.log(1.5), "pi/2": mpmath.pi / 2}
        exact = float(known.get(digits) or mpmath.mpf(digits))
        K = np.asarray(K, dtype=float)
        p = gt.Parameters(A=np.asarray(A, float), V=np.eye(len(K)), B=0.5 * K, noise=noise)
        bracket = in_balls(p, gt.Gaussian(np.zeros(len(K)), L))
        assert bracket.lower * (1 - 2e-16) <= exact <= bracket.upper * (1 + 2e-16)
        assert bracket.width < 2e-15

    def test_nonsymmetric_score_matrix_of_low_rank(self):
        # B7
        p = gt.Parameters(
            A=[[0.5, 1, 0], [0, -0.3, 2], [-1, 0, 0.2]],
            V=0.5 * np.eye(3),
            B=[[1, 1, 0], [0, 1, 0.5], [0, 0, 2]],
        )
        start = gt.Gaussian(np.zeros(3), [[0.5, 0], [0.25, 0.5], [0, -0.25]])
        bracket = in_balls(p, start)
        assert bracket.lower <= 0.90089450682588200162 <= bracket.upper
        assert bracket.width < 2e-15
        found = gt.blow_up(p, start)
        assert found.proved
        assert found.lower <= bracket.upper
        assert bracket.lower <= found.upper

    def test_rank_one_on_a_repelling_ray_is_reduced(self):
        # R2: the start spans an invariant line, which repels what is beside it.
        p = gt.Parameters(V=[[1.0, 1.0], [0.0, 2.0]], B=[[1.0, -3.0], [0.0, -1.0]])
        assert reduced(p, np.array([[1.0], [0.0]]))[0].dim == 1
        found = gt.blow_up(p, gt.Gaussian([0, 0], [[1.0], [0.0]]))
        assert found.proved
        assert found.lower <= 0.5 <= found.upper

    def test_without_a_blow_up(self):
        C1 = gt.Parameters(A=[[10, -7.5], [5, -3]], V=[[1, 0.5], [0.5, 1]], B=-I2)
        for p, start in (
            (C1, law([1.0, 1.0])),
            (G3[0], gt.Gaussian([0, 0], [[0.0], [1.0]])),  # s' = -2 s²
            (gt.Parameters(A=I2), law([1.0, 1.0])),  # no attention
            (gt.Parameters(V=I2, B=I2), gt.Gaussian([0, 0], np.zeros((2, 0)))),
            (gt.Parameters(A=-9 * I2, V=[[0, 1], [0, 1]], B=[[1, 2], [0, 1]]), law([1.0, 1.0])),
        ):
            found = gt.blow_up(p, start)
            assert found.status is BlowUpStatus.NEVER
            assert found.proved
            assert found.lower == found.upper == found.estimate == math.inf
        turning = gt.Parameters(V=I2 + 2 * J, B=-(I2 + 0.5 * J))
        assert gt.blow_up(turning, law([1.0, 1.0])).status is BlowUpStatus.NEVER
        still = gt.blow_up(turning, law([1.0, 1.0]), precise=False)
        assert still.status is BlowUpStatus.UNDECIDED
        assert not still.proved
        assert still.estimate == math.inf
        assert 0 < still.lower < still.upper == math.inf

    @pytest.mark.parametrize("J", [np.ones((2, 2)), [[0.0, 1.0], [1.0, 0.0]]])
    def test_an_equilibrium_stands_still(self, J):
        V = I2 + J
        found = gt.blow_up(gt.Parameters(A=V @ V, V=V, B=-V), law([1.0, 1.0]))
        assert (found.status, found.proved) == (BlowUpStatus.NEVER, True)

    def test_an_equilibrium_with_noise_stands_still(self):
        p = gt.Parameters(A=[[-1.0]], V=[[1.0]], B=[[0.5]], noise=[[1.0]])
        found = gt.blow_up(p, gt.Gaussian([0.0], [[1.0]]))
        assert (found.status, found.proved) == (BlowUpStatus.NEVER, True)

    def test_one_float_above_the_threshold(self):
        # s' = -2 s + 2 s², so T* = log(s / (s - 1)) / 2.
        p = gt.Parameters(A=[[-1.0]], V=[[1.0]], B=[[1.0]])
        found = gt.blow_up(p, gt.Gaussian([0.0], [[1.0 + 2.0**-52]]))
        assert (found.status, found.proved) == (BlowUpStatus.BLOWS_UP, True)
        assert found.lower < 0.5 * 51 * np.log(2) <= found.upper * (1 + 1e-15)
        assert found.lower <= found.estimate <= found.upper

    def test_a_closed_form_in_a_subspace_says_so(self):
        p = gt.Parameters(A=np.diag([-1.0, 1.0]), V=np.diag([1.0, 2.0]), B=I2)
        found = gt.blow_up(p, gt.Gaussian([0.0, 0.0], [[2.0], [0.0]]))
        assert found.proved
        assert found.reason.endswith("in the coordinates that the covariance ever reaches")


class TestBounds:
    """The bounds on the rest of the time, from exact covariances."""

    def test_the_spectral_bound_has_the_digits_of_forty_digit_arithmetic(self):
        p, start = G1
        expected = {1.23166247903553998: 0.4189475613181329244, 0.56833752096446: 1.76537948042470}
        seen = estimate_blow_up(p, start.factor)
        with balls.precision(128):
            S = balls.balls(start.covariance)
            for one in find_eigenvectors(p, seen.direction):
                bound = build_spectral(p, one.vector, one.values).time(S)
                (key,) = [k for k in expected if abs(k - one.values[0, 0]) < 1e-9]
                assert float(bound) == pytest.approx(expected[key], rel=1e-13)

    def test_the_bound_from_below_is_that_of_a_scalar_equation(self):
        # V = B = I, A = a I, n = 4: c = 2, y = 4, so that T >= log(1 + a/(2 y))/a with 2a for a.
        p = gt.Parameters(A=0.5 * np.eye(4), V=np.eye(4), B=np.eye(4))
        with balls.precision(128):
            flow = CovarianceFlow(p, np.eye(4))
            bound = time_from_below(flow, balls.identity(4))
            assert float(bound) == pytest.approx(math.log(1 + 1 / 8), rel=1e-12)

    @settings(max_examples=5)
    @given(generators())
    def test_bounds_hold_for_every_start_and_every_system(self, rng):
        """Against the blow-up time by integration in floats."""
        d = int(rng.integers(1, 4))
        heads = int(rng.integers(1, 3))
        A = 0.5 * rng.standard_normal((d, d))
        V, B = rng.standard_normal((2, heads, d, d))
        noise = None if rng.random() < 0.5 else 0.2 * np.eye(d)
        p = gt.Parameters(A=A, V=V, B=B, noise=noise)
        L = factor(rng, d, int(rng.integers(1, d + 1)), 0.5)
        path = gt.simulate(gt.Gaussian(np.zeros(d), L), p, 20.0, max_steps=1500)
        with balls.precision(96):
            flow = CovarianceFlow(p, np.eye(d))
            bound = time_from_below(flow, flow.covariance(L))
            assert bound is None or float(bound) <= 1e-9 + path.blow_up_time
            if path.blow_up_time == math.inf:
                return
            seen = estimate_blow_up(p, L)
            ray = find_ray(p, np.eye(d), seen.direction)
            restart = build_restart(p, flow, ray, find_eigenvectors(p, seen.direction))
            for part in (0.0, 0.5, 0.9, 0.99, 1 - 1e-4):
                t = part * path.blow_up_time
                S = balls.balls(path.at(t).covariance)
                early, late = restart.bracket(S)
                left = path.blow_up_time - t
                assert float(early) <= left * (1 + 1e-4)
                assert late is None or float(late) >= left * (1 - 1e-4)

    def test_widths_shrink_with_the_time_that_is_left(self):
        """Crude bound below, eigenvector above: relative widths at t/T = 0.9, 0.99, 0.999."""
        p, start = G2
        T = 0.3017899749243379
        path = gt.simulate(start, p, 1.0)
        eigenvectors = find_eigenvectors(p, estimate_blow_up(p, start.factor).direction)
        widths = []
        with balls.precision(128):
            flow = CovarianceFlow(p, np.eye(3))
            restart = build_restart(p, flow, None, eigenvectors)
            for part in (0.9, 0.99, 0.999):
                early, late = restart.bracket(balls.balls(path.at(part * T).covariance))
                widths.append(((part * T + float(early)) / T - 1, (part * T + float(late)) / T - 1))
        for (low, high), left in zip(widths, (0.1, 0.01, 0.001), strict=True):
            assert -0.75 * left < low < 0 < high < 1.2 * left

    def test_the_cone_is_tighter_by_orders(self):
        p, start = G1
        seen = estimate_blow_up(p, start.factor)
        ray = find_ray(p, I2, seen.direction)
        path = gt.simulate(start, p, 1.0)
        with balls.precision(128):
            flow = CovarianceFlow(p, I2)
            cone = build_cone(flow, ray.ray, ray.functional, ray.frame)
            for left, width in ((1e-2, 1e-3), (1e-4, 1e-4), (1e-6, 1e-5)):
                t = seen.time * (1 - left)
                early, late = cone.bracket(balls.balls(path.at(t).covariance))
                assert float(early) <= (seen.time - t) * (1 + 1e-5)
                assert float(late) >= (seen.time - t) * (1 - 1e-5)
                assert float(late - early) < width * float(late)
            # Far from the ray there is no cone.
            assert cone.bracket(balls.balls(np.diag([1e-8, 1.0]))) is None

    def test_a_repelling_ray_has_no_cone(self):
        p = gt.Parameters(V=[[1.0, 1.0], [0.0, 2.0]], B=[[1.0, -3.0], [0.0, -1.0]])
        e1 = np.array([1.0, 0.0, 0.0])
        with balls.precision(96):
            flow = CovarianceFlow(p, I2)
            assert build_cone(flow, e1, e1, np.eye(3)[:, 1:]) is None
        assert find_ray(p, I2, np.diag([1.0, 0.0])) is None


class TestRandomSystems:
    def test_brackets_hold_against_accurate_integration(self):
        rng = np.random.default_rng(11)
        proved = 0
        for _ in range(8):
            d = int(rng.integers(1, 4))
            A = 0.5 * rng.standard_normal((d, d))
            V = 0.6 * rng.standard_normal((d, d)) + 1.5 * np.eye(d)
            root = rng.standard_normal((d, d))
            skew = rng.standard_normal((d, d))
            p = gt.Parameters(A=A, V=V, B=root @ root.T + 0.2 * (skew - skew.T))
            start = gt.Gaussian(np.zeros(d), factor(rng, d, int(rng.integers(1, d + 1)), 0.5))
            found = gt.blow_up(p, start, horizon=5.0)
            path = gt.simulate(start, p, 5.0)
            if found.status is BlowUpStatus.BLOWS_UP and found.upper < 5.0:
                assert found.lower * (1 - 1e-10) <= path.blow_up_time
                assert path.blow_up_time <= found.upper * (1 + 1e-10)
                assert found.width < 1e-11
                proved += found.proved
            elif found.status is BlowUpStatus.NEVER:
                assert path.blow_up_time == math.inf
        assert proved >= 5

    @pytest.mark.parametrize("size", [1e-8, 1e8])
    def test_units_do_not_matter(self, size):
        p, start = G1
        T = 0.3671671986676109
        # Time in other units, and tokens in other units.
        for made, scale in (
            (gt.Parameters(A=size * p.A, V=size * p.V, B=p.B), size),
            (gt.Parameters(A=p.A, V=size * p.V, B=p.B / size), 1.0),
        ):
            found = gt.blow_up(made, start)
            assert found.proved
            assert found.width < 3e-15
            assert found.estimate * scale == pytest.approx(T, rel=1e-14)
        tokens = gt.Gaussian(start.mean, start.factor * size)
        found = gt.blow_up(gt.Parameters(A=p.A, V=p.V, B=p.B / size**2), tokens)
        assert found.proved
        assert found.estimate == pytest.approx(T, rel=1e-14)
        skewed = np.diag([1.0, size])
        inverse = np.diag([1.0, 1 / size])
        made = gt.Parameters(
            A=skewed @ p.A @ inverse, V=skewed @ p.V @ inverse, B=inverse @ p.B @ inverse
        )
        found = gt.blow_up(made, gt.Gaussian(start.mean, skewed @ start.factor))
        assert found.proved
        assert found.estimate == pytest.approx(T, rel=1e-12)


@pytest.fixture(scope="module")
def case():
    problem = CertificationProblem((G1[0],), G1[1])
    (claim,) = find(problem)
    return problem, claim


class TestRule:
    def test_the_claim_is_proved_from_its_data_alone(self, case):
        problem, claim = case
        RULE.check(problem, claim)
        said = RULE.state(problem, claim)
        assert said.verdict is Verdict.BLOWS_UP
        assert said.scope is Scope.THIS_START
        assert said.lower <= 0.36716719866761086 <= said.upper
        assert repr(said.lower) in said.text

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("upper", lambda x: x * 0.9),
            ("upper", lambda x: np.nextafter(x, 0) - 2e-16),
            ("lower", lambda x: x * 1.1),
            ("lower", lambda x: np.nextafter(x, 1) + 2e-16),
            ("upper", lambda x: math.inf),
            ("upper", lambda x: math.nan),
            ("lower", lambda x: -1.0),
            ("order", lambda x: 10.0),
            ("order", lambda x: 1e6),
            ("order", lambda x: 40.5),
            ("bits", lambda x: 53.0),
            ("bits", lambda x: 1e9),
            ("eigenvectors", lambda x: x + 1),
        ],
    )
    def test_changed_numbers_are_refuted(self, case, name, value):
        problem, claim = case
        numbers = {**claim.numbers, name: value(claim.numbers[name])}
        with pytest.raises(Refuted):
            RULE.check(problem, replace(claim, numbers=numbers))

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("steps", lambda x: x[:-8]),
            ("steps", lambda x: 1.2 * x),
            ("steps", lambda x: -x),
            ("steps", lambda x: np.append(x, 1.0)),
            ("steps", lambda x: x[None]),
            ("steps", lambda x: np.full(5000, 1e-6)),
            ("coordinates", lambda x: 0 * x),
            ("coordinates", lambda x: x[:1]),
            ("ray", lambda x: x + [0.0, 0.3, 0.0]),
            ("ray", lambda x: -x),
            ("functional", lambda x: x * np.nan),
            ("functional", lambda x: 0 * x),
            ("frame", lambda x: 0 * x),
            ("frame", lambda x: x[:, ::-1] * [[1.0, 1e6]]),
            ("eigenvector 0", lambda x: x[:1]),
        ],
    )
    def test_changed_arrays_are_refuted(self, case, name, value):
        problem, claim = case
        arrays = {**claim.arrays, name: value(claim.arrays[name])}
        with pytest.raises(Refuted):
            RULE.check(problem, replace(claim, arrays=arrays))

    def test_other_problems_are_refuted(self, case):
        _, claim = case
        p, start = G1
        others = [
            CertificationProblem((p,), None),
            CertificationProblem((p, p), start),
            CertificationProblem((p,), law([1.0, 1.0 + 1e-12])),
            CertificationProblem((p,), gt.Gaussian([0, 0], [[1.0], [0.0]])),
            CertificationProblem((gt.Parameters(A=p.A, V=p.V.T, B=p.B),), start),
            CertificationProblem((gt.Parameters(A=p.A, V=p.V, B=p.B.T),), start),
            CertificationProblem((gt.Parameters(A=p.A, V=p.V, B=p.B, noise=1e-9 * I2),), start),
            CertificationProblem((G2[0],), G2[1]),
        ]
        for other in others:
            with pytest.raises(Refuted):
                RULE.check(other, claim)

    def test_missing_data_are_refuted(self, case):
        problem, claim = case
        for name in claim.numbers:
            rest = {k: v for k, v in claim.numbers.items() if k != name}
            with pytest.raises(Refuted):
                RULE.check(problem, replace(claim, numbers=rest))
        for name in ("steps", "coordinates", "functional", "frame", "ray"):
            rest = {k: v for k, v in claim.arrays.items() if k != name}
            with pytest.raises(Refuted):
                RULE.check(problem, replace(claim, arrays=rest))

    def test_a_wider_bracket_is_proved_too(self, case):
        problem, claim = case
        numbers = {**claim.numbers, "lower": 0.3, "upper": 0.4}
        RULE.check(problem, replace(claim, numbers=numbers))

    def test_no_claim_without_a_blow_up(self):
        assert not list(find(CertificationProblem((G3[0],), None)))
        start = gt.Gaussian([0, 0], [[0.0], [1.0]])
        assert not list(find(CertificationProblem((G3[0],), start)))

    def test_claims_with_noise_several_heads_and_low_rank(self):
        p = gt.Parameters(A=0.2 * I2, V=HEADS, B=[I2, 2 * I2], noise=[[0.1, 0.0], [0.0, 0.2]])
        for case in (
            CertificationProblem((p,), law([1.0, 1.0])),
            CertificationProblem((R3[0],), R3[1]),
        ):
            (claim,) = find(case)
            RULE.check(case, claim)
            said = RULE.state(case, claim)
            T = gt.simulate(case.start, case.parameters, 2.0).blow_up_time
            assert said.lower * (1 - 1e-11) <= T <= said.upper * (1 + 1e-11)


class TestEntry:
    def test_numerical_only(self):
        found = gt.blow_up(*G1, precise=False)
        assert found.status is BlowUpStatus.BLOWS_UP
        assert not found.proved
        assert found.upper == math.inf
        assert 0 < found.lower < 0.3671671986676109
        assert found.estimate == pytest.approx(0.3671671986676109, rel=1e-11)
        assert "numerical" in repr(found)

    def test_large_dimension_is_numerical(self):
        rng = np.random.default_rng(0)
        V = 0.1 * rng.standard_normal((12, 12)) + np.eye(12)
        found = gt.blow_up(gt.Parameters(V=V, B=np.eye(12)), law(np.ones(12)))
        assert found.status is BlowUpStatus.BLOWS_UP
        assert np.isfinite(found.estimate)
        assert not found.proved or found.lower <= found.estimate <= found.upper

    def test_horizon(self):
        found = gt.blow_up(*D2, horizon=0.1)
        assert found.status is BlowUpStatus.UNDECIDED
        assert "0.1" in found.reason

    def test_wrong_arguments(self):
        p, start = G1
        with pytest.raises(InvalidShape, match="must be constant Parameters"):
            gt.blow_up(I2, start)
        with pytest.raises(InvalidShape, match="must be a Gaussian"):
            gt.blow_up(p, I2)
        with pytest.raises(InvalidShape, match="dimension 3"):
            gt.blow_up(p, G2[1])
        with pytest.raises(InvalidNumber, match="greater than 0"):
            gt.blow_up(p, start, horizon=0.0)

    def test_progress_and_interruption(self):
        told = []
        gt.blow_up(*G1, progress=lambda part, text: told.append((part, text)))
        parts = [part for part, _ in told]
        assert parts == sorted(parts)
        assert all(0 <= part <= 1 for part in parts)

        def interrupt(part, text):
            if "balls" in text:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            gt.blow_up(*G1, progress=interrupt)

    def test_precision_is_left_as_it_was(self):
        before = arb("0.1").rad()
        gt.blow_up(*D2)
        assert arb("0.1").rad() == before

    def test_order_grows_with_precision(self):
        assert order_for(128) < order_for(256) < order_for(1024) < 400
        assert order_for(53) > taylor.SHARP_COEFFICIENTS
