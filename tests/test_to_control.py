"""Laws as systems of python-control: signals, simulation, exact derivatives, interconnection."""

from __future__ import annotations

import control
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import gtcontrol as gt
from gtcontrol.errors import (
    IndefiniteCovariance,
    InvalidControls,
    InvalidMethod,
    InvalidNumber,
    InvalidShape,
    TooLarge,
)
from gtcontrol.riccati_flow.kalman import KalmanModel

ACCURATE = {"rtol": 1e-11, "atol": 1e-12}


def parameters(seed: int, d: int = 2, heads: int = 0, *, noise: bool = False, beta: bool = True):
    rng = np.random.default_rng(seed)
    lead = (heads,) if heads else ()
    root = rng.normal(size=(d, d)) / 3
    return gt.Parameters(
        A=rng.normal(size=(d, d)) / 2,
        B=rng.normal(size=(*lead, d, d)) / 3,
        V=rng.normal(size=(*lead, d, d)) / 3,
        b=rng.normal(size=d),
        beta=rng.normal(size=(*lead, d)) / 2 if beta else None,
        noise=root @ root.T if noise else None,
    )


def law(seed: int, d: int = 2, rank: int | None = None) -> gt.Gaussian:
    rng = np.random.default_rng(100 + seed)
    return gt.Gaussian(rng.normal(size=d), rng.normal(size=(d, d if rank is None else rank)) / 2)


def upper(S):
    return S[np.triu_indices(len(S))]


def respond(system, times, start, U=0):
    return control.input_output_response(
        system, times, U, start, solve_ivp_method="DOP853", solve_ivp_kwargs=ACCURATE
    )


# -- signals ---------------------------------------------------------------------------------


def test_signals_have_names():
    system = gt.to_control(parameters(0), inputs="bA", name="layer")
    assert system.name == "layer"
    assert system.state_labels == ["m[0]", "m[1]", "S[0,0]", "S[0,1]", "S[1,1]"]
    assert system.output_labels == system.state_labels
    assert system.input_labels == ["dA[0,0]", "dA[0,1]", "dA[1,0]", "dA[1,1]", "db[0]", "db[1]"]
    heads = gt.to_control(parameters(0, heads=2), inputs="V", coordinates="factor", rank=1)
    assert heads.input_labels[:5] == ["dV[0,0,0]", "dV[0,0,1]", "dV[0,1,0]", "dV[0,1,1]",
                                      "dV[1,0,0]"]  # fmt: skip
    assert heads.state_labels == ["m[0]", "m[1]", "L[0,0]", "L[1,0]"]
    assert heads.output_labels == system.output_labels
    assert isinstance(system, control.NonlinearIOSystem)


def test_states_translate_back():
    p, start = parameters(1, 3), law(1, 3)
    for system in (gt.to_control(p), gt.to_control(p, coordinates="factor")):
        assert gt.wasserstein(system.law_of(system.state_of(start)), start) < 1e-7
    flat = gt.to_control(p, coordinates="factor", rank=2)
    with pytest.raises(InvalidShape, match="rank 3, but the factor of this system has 2"):
        flat.state_of(start)
    with pytest.raises(IndefiniteCovariance):
        gt.to_control(p).law_of([0, 0, 0, 1, 0, 0, -1, 0, 1])
    with pytest.raises(InvalidShape, match="dimension 2, the system 3"):
        flat.state_of(law(0, 2))
    with pytest.raises(InvalidShape, match="must be a Gaussian"):
        flat.state_of([0.0])


# -- simulation ------------------------------------------------------------------------------


@pytest.mark.parametrize("heads", [0, 2])
@pytest.mark.parametrize("coordinates", ["covariance", "factor"])
def test_responses_are_simulations(heads, coordinates):
    p, start = parameters(3, 3, heads), law(3, 3)
    system = gt.to_control(p, coordinates=coordinates)
    assert system.ninputs == 0
    times = np.linspace(0, 0.5, 6)
    seen = respond(system, times, system.state_of(start))
    path = gt.simulate(start, p, 0.5)
    for i, t in enumerate(times):
        now = path.at(float(t))
        expected = np.concatenate([now.mean, upper(now.covariance)])
        np.testing.assert_allclose(seen.outputs[:, i], expected, atol=1e-8)


def test_singular_laws_keep_their_rank_in_factors():
    p, start = parameters(5, 3), law(5, 3, 1)
    system = gt.to_control(p, coordinates="factor", rank=1)
    seen = respond(system, [0, 0.2, 0.4], system.state_of(start))
    end = gt.simulate(start, p, 0.4).final
    assert gt.wasserstein(system.law_of(seen.states[:, -1]), end) < 1e-8


def test_a_point_has_a_mean_only():
    p, start = parameters(6), gt.Gaussian([1.0, 2.0], np.zeros((2, 0)))
    system = gt.to_control(p, coordinates="factor", rank=0, inputs="Vb")
    assert system.state_labels == ["m[0]", "m[1]"]
    linear = control.linearize(system, start)
    M = p.A + p.V
    np.testing.assert_allclose(linear.A, M, atol=1e-14)
    np.testing.assert_allclose(linear.B[:, -2:], np.eye(2))
    np.testing.assert_allclose(linear.C, np.eye(5, 2))


def test_process_noise_is_in_the_covariance():
    p, start = parameters(7, 2, noise=True), law(7)
    system = gt.to_control(p)
    seen = respond(system, [0, 0.3, 0.6], system.state_of(start))
    end = gt.simulate(start, p, 0.6).final
    np.testing.assert_allclose(seen.outputs[2:, -1], upper(end.covariance), atol=1e-8)


def test_schedules_vary_in_time():
    def at(t):
        return gt.Parameters(A=[[np.sin(3 * t), 0.2], [0.0, -t]], V=np.eye(2) * t, B=-np.eye(2))

    schedule, start = gt.Schedule.from_function(at, 1.0), law(8)
    system = gt.to_control(schedule, inputs="A")
    seen = respond(system, [0, 0.5, 1.0], system.state_of(start))
    end = gt.simulate(start, schedule).final
    np.testing.assert_allclose(seen.outputs[2:, -1], upper(end.covariance), atol=1e-8)
    early, late = (control.linearize(system, start, t=t).A for t in (0.0, 0.7))
    assert np.linalg.norm(early - late) > 0.1
    np.testing.assert_allclose(late[0, 0], np.sin(2.1) + 0.7 - 0.7 * start.covariance[0, 0])


@pytest.mark.parametrize("letter", list("AVBb"))
def test_inputs_are_added_to_the_parameters(letter):
    p, start = parameters(9, 2, 2), law(9)
    system = gt.to_control(p, inputs=letter)
    rng = np.random.default_rng(1)
    u = rng.normal(size=system.ninputs) / 5
    given = {c: getattr(p, c) for c in "AVBb"}
    given[letter] = given[letter] + u.reshape(given[letter].shape)
    times = np.array([0.0, 0.25, 0.5])
    U = np.outer(u, np.ones(3))
    seen = respond(system, times, system.state_of(start), U)
    moved = gt.simulate(start, gt.Parameters(**given, beta=p.beta), 0.5).final
    expected = np.concatenate([moved.mean, upper(moved.covariance)])
    np.testing.assert_allclose(seen.outputs[:, -1], expected, atol=1e-8)


# -- derivatives -----------------------------------------------------------------------------


def rate_in_digits(p, m, S, u):
    """(m', upper triangle of S') by mpmath, from the moments of Gaussians, entry by entry."""
    d = len(m)
    A, V, B, b = u
    tilt = [sum(B[i][j] * m[j] for j in range(d)) + mpmath.mpf(float(p.beta[i])) for i in range(d)]
    mean = [m[i] + sum(S[i][j] * tilt[j] for j in range(d)) for i in range(d)]
    rate = [sum(A[i][j] * m[j] + V[i][j] * mean[j] for j in range(d)) + b[i] for i in range(d)]
    SB = [[sum(S[i][k] * B[k][j] for k in range(d)) for j in range(d)] for i in range(d)]
    M = [[A[i][j] + sum(V[i][k] * SB[k][j] for k in range(d)) for j in range(d)] for i in range(d)]
    MS = [[sum(M[i][k] * S[k][j] for k in range(d)) for j in range(d)] for i in range(d)]
    return rate + [MS[i][j] + MS[j][i] for i in range(d) for j in range(i, d)]


def test_derivatives_agree_with_differences_in_fifty_digits():
    p, start, d = parameters(11), law(11), 2
    system = gt.to_control(p, inputs="AVBb")
    linear = control.linearize(system, start)
    point = [*map(float, system.state_of(start)), *p.A.ravel(), *p.V.ravel(), *p.B.ravel(), *p.b]

    def rate(x):
        m, (s, c, z) = x[:2], x[2:5]
        A, V, B = ([x[i : i + 2], x[i + 2 : i + 4]] for i in (5, 9, 13))
        return rate_in_digits(p, m, [[s, c], [c, z]], (A, V, B, x[17:19]))

    with mpmath.workdps(50):
        point = [mpmath.mpf(float(x)) for x in point]
        h, columns = mpmath.mpf(10) ** -20, []
        for i in range(len(point)):
            ahead, back = list(point), list(point)
            ahead[i] += h
            back[i] -= h
            pairs = zip(rate(ahead), rate(back), strict=True)
            columns.append([float((x - y) / (2 * h)) for x, y in pairs])
    expected = np.array(columns).T
    np.testing.assert_allclose(linear.A, expected[:, : 3 + d], rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(linear.B, expected[:, 3 + d :], rtol=1e-13, atol=1e-14)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    d=st.integers(1, 3),
    heads=st.integers(0, 2),
    coordinates=st.sampled_from(["covariance", "factor"]),
    inputs=st.sampled_from(["", "A", "V", "B", "b", "AVBb", "Vb"]),
)
def test_linearisations_are_exact(seed, d, heads, coordinates, inputs):
    """The field is a polynomial of low degree: differences of order 6 are exact to rounding."""
    p, start = parameters(seed, d, heads), law(seed, d)
    system = gt.to_control(p, inputs=inputs, coordinates=coordinates)
    rng = np.random.default_rng(seed)
    u = rng.normal(size=system.ninputs) / 4
    x = system.state_of(start)
    linear = control.linearize(system, x, u)

    def columns(f, z):
        h, made = 0.25, []
        for e in np.eye(z.size):
            terms = ((1, 45), (2, -9), (3, 1))
            made.append(sum(w * (f(z + k * h * e) - f(z - k * h * e)) for k, w in terms) / 60 / h)
        return np.array(made).T

    for exact, expected in (
        (linear.A, columns(lambda z: system.dynamics(0, z, u), x)),
        (linear.B, columns(lambda z: system.dynamics(0, x, z), u)),
        (linear.C, columns(lambda z: system.output(0, z, u), x)),
    ):
        if expected.size:
            scale = max(1.0, np.max(np.abs(expected)))
            assert np.max(np.abs(exact - expected)) < 1e-11 * scale
    assert not np.any(linear.D)


def test_differences_of_python_control_would_be_wrong_by_more():
    """Its own method, one-sided with step 1e-6, is six digits; ours replaces it."""
    p, start = parameters(13, 3), law(13, 3)
    system = gt.to_control(p, inputs="VB")
    x, u = system.state_of(start), np.zeros(18)
    exact = control.linearize(system, x, u)
    coarse = control.NonlinearIOSystem.linearize(system, x, u)
    assert 1e-9 < np.max(np.abs(exact.A - coarse.A)) < 1e-4


def test_names_are_copied_on_demand():
    system = gt.to_control(parameters(14), inputs="b")
    linear = control.linearize(system, law(14), copy_names=True)
    assert linear.state_labels == system.state_labels
    assert linear.input_labels == ["db[0]", "db[1]"]
    named = control.linearize(system, law(14), name="linear", inputs=["p", "q"])
    assert (named.name, named.input_labels) == ("linear", ["p", "q"])


def test_covariance_derivatives_see_a_transposed_score_matrix():
    p, start = parameters(15), law(15)
    turned = gt.Parameters(p.A, p.B.T, p.V, p.b, beta=p.beta)
    one, other = (control.linearize(gt.to_control(q), start).A for q in (p, turned))
    assert np.max(np.abs(one[2:, 2:] - other[2:, 2:])) > 1e-2


# -- python-control's own tools --------------------------------------------------------------


def test_riccati_filters_linearise_to_their_closed_loop():
    """With V = I and B = -C'R⁻¹C/2, S' = AS + SA' - SC'R⁻¹CS: at the steady state, F = A - SC'R⁻¹C.

    The covariance part of the linearisation is X -> FX + XF', with eigenvalues λ_i + λ_j.
    """
    A, C, R = np.array([[0.5, 1.0], [0.0, 0.25]]), np.array([[1.0, 0.5]]), np.array([[0.5]])
    P = np.asarray(control.care(A.T, C.T, np.zeros((2, 2)), R)[0])
    p = KalmanModel(A, C, R).parameters()
    system = gt.to_control(p)
    steady = gt.Gaussian.from_covariance([0.0, 0.0], P)
    start = system.state_of(steady)
    np.testing.assert_allclose(system.dynamics(0, start, [])[2:], 0, atol=1e-12)
    linear = control.linearize(system, start)
    modes = np.linalg.eigvals(A - P @ C.T @ np.linalg.inv(R) @ C)
    sums = [modes[i] + modes[j] for i in range(2) for j in range(i, 2)]
    found = np.linalg.eigvals(linear.A[2:, 2:])
    np.testing.assert_allclose(np.sort(found), np.sort(sums), atol=1e-10)


def test_an_operating_point_is_an_equilibrium():
    p = gt.Parameters(A=[[1.0]], V=[[-1.0]], B=[[0.5]], b=[1.0])  # s' = 2s - s², m' = -s m/2 + 1
    system = gt.to_control(p)
    found = control.find_operating_point(system, [0.1, 1.5], [])
    np.testing.assert_allclose(found.states, [1.0, 2.0], atol=1e-9)
    linear = control.linearize(system, found)
    np.testing.assert_allclose(linear.A, [[-1.0, -0.5], [0.0, -2.0]], atol=1e-8)


def test_a_regulator_on_the_linearisation_stabilises():
    p = gt.Parameters(A=[[1.0]], V=[[1.0]], B=[[-0.25]])  # s' = 2s - s²/2; the mean is unstable
    system = gt.to_control(p, inputs="Ab", name="plant")
    start = np.array([0.0, 4.0])
    np.testing.assert_allclose(system.dynamics(0, start, np.zeros(2)), 0, atol=1e-14)
    linear = control.linearize(system, start)
    K, _, modes = control.lqr(linear, np.eye(2), np.eye(2))
    assert np.all(modes.real < 0)
    gains = control.NonlinearIOSystem(
        None, lambda t, x, y, params: K @ (y - start), inputs=2, outputs=2, name="gain"
    )
    loop = control.feedback(system, gains)
    ended = respond(loop, np.linspace(0, 12, 50), [0.1, 4.2])
    np.testing.assert_allclose(ended.states[:, -1], start, atol=1e-4)
    free = respond(system, np.linspace(0, 12, 50), [0.1, 4.2])
    assert abs(free.states[0, -1]) > 10


def test_systems_interconnect_by_names():
    p = parameters(17)
    first = gt.to_control(p, inputs="b", name="first")
    second = gt.to_control(p, inputs="b", name="second")
    both = control.interconnect(
        [first, second],
        connections=[["second.db[0]", "first.m[0]"], ["second.db[1]", "first.m[1]"]],
        inplist=["first.db[0]"],
        outlist=["second.m[0]"],
        check_unused=False,
    )
    assert (both.nstates, both.ninputs, both.noutputs) == (10, 1, 1)
    x = np.concatenate([first.state_of(law(17)), second.state_of(law(18))])
    together = both.dynamics(0, x, [0.3])
    np.testing.assert_allclose(together[:5], first.dynamics(0, x[:5], [0.3, 0.0]))
    np.testing.assert_allclose(together[5:], second.dynamics(0, x[5:], x[:2]))


# -- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"inputs": "AX"}, InvalidControls, r"`inputs` = 'AX' holds unknown letter\(s\) X"),
        ({"inputs": "AA"}, InvalidControls, "repeats a letter"),
        ({"inputs": 3}, InvalidControls, "must be a string"),
        ({"coordinates": "cov"}, InvalidMethod, "must be 'covariance' or 'factor'"),
        ({"rank": 1}, InvalidNumber, 'only coordinates="factor" need'),
        ({"rank": 3, "coordinates": "factor"}, InvalidNumber, "more than the dimension 2"),
        ({"rank": -1, "coordinates": "factor"}, InvalidNumber, "at least 0"),
        ({"name": "a.b"}, InvalidMethod, "without dots"),
        ({"name": ""}, InvalidMethod, "without dots"),
    ],
)
def test_bad_arguments_are_one_line(options, error, words):
    with pytest.raises(error, match=words) as caught:
        gt.to_control(parameters(0), **options)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_is_refused():
    with pytest.raises(InvalidMethod, match="process noise changes the rank"):
        gt.to_control(parameters(0, noise=True), coordinates="factor")
    with pytest.raises(InvalidShape, match="must be Parameters or a Schedule, not list"):
        gt.to_control([1.0])
    with pytest.raises(TooLarge, match="derivatives of a system"):
        gt.to_control(gt.Parameters(dim=3000), inputs="A")
    system = gt.to_control(parameters(0), inputs="b")
    with pytest.raises(InvalidShape, match="`x0` must have shape"):
        control.linearize(system, [1.0, 2.0])
    with pytest.raises(InvalidShape, match="`u0` must have shape"):
        control.linearize(system, law(0), [1.0])
