"""Schedules: pieces, breakpoints, subspaces, and how they are saved."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import gtcontrol as gt
from gtcontrol.errors import IncompatibleSchedule, InvalidNumber, InvalidShape
from gtcontrol.results.schedules import pack_schedule, unpack_schedule
from gtcontrol.schedule import resolve
from tests.strategies import generators, orthogonal


def scalar(value):
    return gt.Parameters(A=[[value]])


class TestPiecewiseConstant:
    schedule = gt.Schedule([0.0, 0.5, 2.0], [scalar(1.0), scalar(2.0)])

    def test_a_breakpoint_belongs_to_the_piece_that_begins_there(self):
        values = [self.schedule(t).A[0, 0] for t in (0.0, 0.499, 0.5, 1.0, 2.0)]
        assert values == [1.0, 1.0, 2.0, 2.0, 2.0]
        assert self.schedule.horizon == 2.0
        assert self.schedule.dim == 1
        assert self.schedule.piecewise_constant

    def test_pieces_are_closed_intervals(self):
        first, second = self.schedule.pieces()
        assert (first.start, first.end, second.start, second.end) == (0.0, 0.5, 0.5, 2.0)
        assert first.law(first.end).A[0, 0] == 1.0  # the left limit
        assert second.law(second.start).A[0, 0] == 2.0

    @pytest.mark.parametrize("t", [-0.1, 2.1, np.nan])
    def test_outside_there_is_nothing(self, t):
        with pytest.raises(IncompatibleSchedule, match=r"defined on \[0, 2\]"):
            self.schedule(t)

    @pytest.mark.parametrize("t", ["x", np.array([0.1, 0.2]), None, True])
    def test_a_time_is_a_number(self, t):
        with pytest.raises(InvalidNumber, match="`t` must be a number"):
            self.schedule(t)
        assert self.schedule(1).A[0, 0] == self.schedule(np.float32(1.5)).A[0, 0] == 2.0

    @pytest.mark.parametrize(
        ("times", "parameters", "error", "words"),
        [
            ([0.0], [], IncompatibleSchedule, "at least two"),
            ([0.0, 1.0, 1.0], [scalar(1.0)] * 2, IncompatibleSchedule, "increase strictly"),
            ([0.5, 1.0], [scalar(1.0)], IncompatibleSchedule, "from 0"),
            ([0.0, 1.0], [scalar(1.0)] * 2, IncompatibleSchedule, "1 piece"),
            ([0.0, 1.0], [None], InvalidShape, "not NoneType"),
            ([0.0, 1.0], scalar(1.0), InvalidShape, "sequence of Parameters, not Parameters"),
            (
                [0.0, 1.0, 2.0],
                [scalar(1.0), gt.Parameters(dim=2)],
                IncompatibleSchedule,
                r"different dimensions \[1, 2\]",
            ),
        ],
    )
    def test_bad_schedules(self, times, parameters, error, words):
        with pytest.raises(error, match=words):
            gt.Schedule(times, parameters)

    def test_rounding_does_not_move_a_layer_into_the_piece_before(self):
        schedule = gt.Schedule([0.0, 0.1, 0.3], [scalar(1.0), scalar(2.0)])
        assert 0.3 / 3 < 0.1
        assert schedule(schedule.snap(0.3 / 3)).A[0, 0] == 2.0
        assert schedule.snap(0.0999) == 0.0999
        path = gt.simulate(gt.Gaussian([1.0], [[1.0]]), schedule, layers=3)
        assert path.final.mean[0] == pytest.approx(1.1 * 1.2 * 1.2, rel=1e-14)

    def test_noise_on_any_piece_is_noticed(self):
        noisy = gt.Parameters(A=[[1.0]], noise=[[1.0]])
        assert not self.schedule.noisy
        assert gt.Schedule([0, 1, 2], [scalar(1.0), noisy]).noisy


class TestFunctions:
    def test_function_with_breakpoints(self):
        schedule = gt.Schedule.from_function(
            lambda t: scalar(1.0 if t < 0.25 else t), 1.0, breakpoints=[0.25, 0.0, 1.0]
        )
        np.testing.assert_array_equal(schedule.times, [0.0, 0.25, 1.0])
        assert not schedule.piecewise_constant
        assert schedule(0.5).A[0, 0] == 0.5

    def test_functions_are_checked(self):
        with pytest.raises(InvalidShape, match="not float"):
            gt.Schedule.from_function(lambda t: t, 1.0)
        changing = gt.Schedule.from_function(lambda t: gt.Parameters(dim=1 + (t > 0.5)), 1.0)
        with pytest.raises(IncompatibleSchedule, match=r"dimension 1 at t = 0, but 2 at t = 0\.75"):
            changing(0.75)
        with pytest.raises(InvalidNumber, match="greater than 0"):
            gt.Schedule.from_function(lambda t: scalar(1.0), 0.0)
        with pytest.raises(InvalidShape, match="function of time, not Parameters; hold constant"):
            gt.Schedule.from_function(scalar(1.0), 1.0)

    @pytest.mark.parametrize(
        ("breakpoints", "error", "words"),
        [
            ([2.0], IncompatibleSchedule, r"lie in \[0, 1\]; 2 does not"),
            ([-0.5, 0.5], IncompatibleSchedule, r"lie in \[0, 1\]; -0\.5 does not"),
            ([0.7, 0.3], IncompatibleSchedule, "`breakpoints` must increase strictly"),
            (0.5, InvalidShape, "`breakpoints` must have 1 dimension"),
        ],
    )
    def test_breakpoints_are_checked(self, breakpoints, error, words):
        with pytest.raises(error, match=words):
            gt.Schedule.from_function(scalar, 1.0, breakpoints=breakpoints)


class TestSubspace:
    @given(generators())
    def test_parameters_act_in_the_basis_only(self, rng):
        U = orthogonal(rng, 5)[:, :2]
        inner = gt.Parameters(A=rng.standard_normal((2, 2)), b=rng.standard_normal(2))
        schedule = gt.Schedule([0.0, 1.0], [inner], basis=U)
        assert schedule.dim == 5
        assert schedule.inner(0.3) is inner
        outside = np.eye(5) - U @ U.T
        np.testing.assert_allclose(schedule(0.3).A @ outside, 0, atol=1e-14)
        np.testing.assert_allclose(U.T @ schedule(0.3).A @ U, inner.A, atol=1e-14)
        (piece,), (inner_piece,) = schedule.pieces(), schedule.pieces(inner=True)
        np.testing.assert_allclose(piece.law(0.0).b, U @ inner.b)
        np.testing.assert_allclose(inner_piece.law(0.0).b, inner.b)


class TestResolve:
    def test_constant_parameters_need_a_horizon(self):
        with pytest.raises(IncompatibleSchedule, match="`horizon` is needed"):
            resolve(scalar(1.0), None, 1)
        schedule, end = resolve(scalar(1.0), 3, 1)
        assert schedule.horizon == end == 3.0

    @pytest.mark.parametrize(
        ("parameters", "horizon", "error", "words"),
        [
            (scalar(1.0), 0.0, InvalidNumber, "greater than 0"),
            (scalar(1.0), -1.0, InvalidNumber, "greater than 0"),
            (scalar(1.0), np.inf, InvalidNumber, "must be finite"),
            (scalar(1.0), "1", InvalidNumber, "not str '1'"),
            (TestPiecewiseConstant.schedule, 2.5, IncompatibleSchedule, "ends at 2"),
            (np.eye(1), 1.0, IncompatibleSchedule, "not ndarray"),
            (gt.Parameters(dim=2), 1.0, InvalidShape, "dimension 2, but the start has 1"),
        ],
    )
    def test_bad_arguments(self, parameters, horizon, error, words):
        with pytest.raises(error, match=words):
            resolve(parameters, horizon, 1)


def largest_difference(first, second, count=157):
    """Largest difference of all parameters over times that are no sample points."""
    worst = 0.0
    for t in np.linspace(0, first.horizon, count):
        p, q = first(t), second(t)
        for letter in ("A", "B", "V", "b", "noise", "beta"):
            one, other = getattr(p, letter), getattr(q, letter)
            if one is not None or other is not None:
                worst = max(worst, float(np.max(np.abs(one - other))))
    return worst


def packed_and_unpacked(schedule):
    arrays = pack_schedule("s", schedule)
    assert all(value.dtype == float for value in arrays.values())
    return unpack_schedule("s", arrays)


class TestPacking:
    @given(st.integers(1, 3), st.sampled_from([None, 1, 3]), st.booleans(), generators())
    def test_piecewise_constant_schedules_are_exact(self, pieces, heads, noisy, rng):
        lead = () if heads is None else (heads,)
        made = [
            gt.Parameters(
                A=rng.standard_normal((2, 2)),
                B=rng.standard_normal((*lead, 2, 2)),
                V=rng.standard_normal((*lead, 2, 2)),
                b=rng.standard_normal(2),
                noise=np.diag(rng.uniform(0, 1, 2)) if noisy else None,
                beta=rng.standard_normal((*lead, 2)),
            )
            for _ in range(pieces)
        ]
        schedule = gt.Schedule(np.arange(pieces + 1.0), made)
        again = packed_and_unpacked(schedule)
        assert again.piecewise_constant
        assert again.noisy == noisy
        assert largest_difference(schedule, again) == 0.0

    def test_pieces_with_different_heads_noise_and_bias(self):
        rng = np.random.default_rng(0)
        two = gt.Parameters(B=rng.standard_normal((2, 2, 2)), V=rng.standard_normal((2, 2, 2)))
        one = gt.Parameters(
            B=rng.standard_normal((2, 2)), V=rng.standard_normal((2, 2)), beta=[1.0, 2.0]
        )
        noisy = gt.Parameters(A=np.eye(2), noise=np.eye(2))
        law = gt.Gaussian([1.0, 0.0], np.eye(2))
        schedule = gt.Schedule([0.0, 0.1, 0.2, 0.3], [two, one, noisy])
        again = packed_and_unpacked(schedule)
        assert len(again(0.0).heads) == len(again(0.15).heads) == 2
        first, second = (gt.simulate(law, s).final for s in (schedule, again))
        np.testing.assert_allclose(first.mean, second.mean, rtol=1e-12)
        np.testing.assert_allclose(first.covariance, second.covariance, rtol=1e-12)

    @pytest.mark.parametrize("frequency", [1.0, 40.0])
    def test_smooth_functions_are_kept_to_rounding(self, frequency):
        def law(t):
            wave = np.sin(frequency * t + 0.3)
            return gt.Parameters(
                A=[[wave]], B=[[[t]], [[1.0]]], V=[[[wave]], [[t]]], noise=[[2 + wave]]
            )

        schedule = gt.Schedule.from_function(law, 1.0, breakpoints=[0.3])
        again = packed_and_unpacked(schedule)
        assert 0.3 in again.times
        assert largest_difference(schedule, again) < 1e-11

    def test_a_jump_without_a_breakpoint_is_smoothed_only_nearby(self):
        schedule = gt.Schedule.from_function(lambda t: scalar(float(t > 1 / 3)), 1.0)
        again = packed_and_unpacked(schedule)
        errors = [abs(again(t).A[0, 0] - float(t > 1 / 3)) for t in np.linspace(0, 1, 999)]
        assert np.mean(np.array(errors) > 1e-9) < 1.1 / 64

    def test_the_basis_is_kept(self):
        U = orthogonal(np.random.default_rng(0), 4)[:, :2]
        inner = gt.Parameters(A=[[1.0, 2.0], [3.0, 4.0]])
        ends = np.array([0.0, 1.0])
        for schedule in (
            gt.Schedule(ends, [inner], basis=U),
            gt.Schedule.from_pieces(ends, [lambda t: inner], 2, basis=U),
        ):
            again = packed_and_unpacked(schedule)
            np.testing.assert_array_equal(again.basis, U)
            assert largest_difference(schedule, again) < 1e-14

    def test_laws_are_never_asked_outside_their_interval(self):
        def law(t):
            assert 0.1 <= t <= 0.7
            return scalar(t)

        times = np.array([0.0, 0.1, 0.7])
        schedule = gt.Schedule.from_pieces(times, [lambda t: scalar(0.0), law], 1)
        packed_and_unpacked(schedule)
