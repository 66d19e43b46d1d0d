"""The nonlinear program: derivatives, independent rows, order of the collocation."""

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm

from gtcontrol.steering.transcription.form import NODES, RUNGE_KUTTA, WEIGHTS, Form, common_sizes
from gtcontrol.steering.transcription.program import Program, program

FORMS = {
    "affine": Form(3, 2, True, False, "Ab", 3, 2, False),
    "attention": Form(2, 2, True, False, "AVBb", 2, 1, False),
    "bounded": Form(2, 2, True, False, "AVBb", 2, 1, False, norms="Ab", trace=True),
    "eigenvalue": Form(3, 2, False, False, "AVB", 2, 1, False, eigenvalue=True),
    "free time": Form(2, 1, True, False, "Ab", 3, 1, True),
    "image": Form(3, 2, False, True, "A", 2, 2, False),
    "mean alone": Form(2, 0, True, False, "V", 2, 2, False),
    "midpoint": Form(2, 2, True, False, "AVBb", 3, 1, False, stages=1),
    "midpoint, bounded": Form(3, 2, True, False, "AVBb", 2, 1, False, "Vb", True, True, stages=1),
    "midpoint, free time": Form(2, 1, True, False, "Ab", 3, 1, True, stages=1),
    "midpoint, image": Form(3, 2, False, True, "A", 2, 1, False, stages=1),
}


def numbers(form, rng):
    """Random unknowns and parameters; widths are positive."""
    made = program(form)
    common = {name: rng.uniform(0.5, 1.5, size) for name, size in common_sizes(form).items()}
    per = rng.uniform(0.5, 1.5, (3, form.intervals))
    return made, rng.standard_normal(form.variables), made.pack_parameters(common, per)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_laid_out_derivatives_equal_automatic_ones(form):
    rng = np.random.default_rng(0)
    made, w0, p0 = numbers(form, rng)
    w, p, f, g = made._expressions(mapped=False)
    own = made._derivatives(*made._expressions(mapped=True))
    lam = rng.standard_normal(g.numel())
    automatic = ca.Function(
        "automatic",
        [w, p],
        [ca.gradient(f, w), ca.jacobian(g, w), ca.hessian(f + ca.dot(lam, g), w)[0]],
    )
    gradient, jacobian, hessian = (np.array(x) for x in automatic(w0, p0))
    assert np.array(own["grad_f"](w0, p0)[1]) == pytest.approx(gradient, abs=1e-12)
    assert np.array(own["jac_g"](w0, p0)[1]) == pytest.approx(jacobian, abs=1e-12)
    found = np.array(own["hess_lag"](w0, p0, 1.0, lam))
    assert found == pytest.approx(np.triu(hessian), abs=1e-10)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_row_has_a_name(form):
    made, w0, p0 = numbers(form, np.random.default_rng(1))
    assert made.residuals(w0, p0).size == len(made.row_names) == len(made.equality)


@pytest.mark.parametrize(
    ("d", "r", "rows"), [(6, 6, 27), (8, 8, 44), (8, 4, 34), (12, 12, 90), (12, 4, 54)]
)
def test_terminal_rows_are_as_many_as_the_dimension_of_the_set(d, r, rows):
    assert Form(d, r, True, False, "Ab", 1, 2, False).terminal_size == rows


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_terminal_rows_are_independent(d):
    rng = np.random.default_rng(d)
    for r in range(d + 1):
        form = Form(d, r, True, False, "Ab", 1, 2, False)
        made = Program(form)
        L1 = rng.standard_normal((d, r))
        Q = np.linalg.qr(rng.standard_normal((r, r)))[0]
        m1 = rng.standard_normal(d)
        common = {name: np.zeros(size) for name, size in common_sizes(form).items()}
        U = np.linalg.svd(L1)[0] if r else np.eye(d)
        common |= {
            "whiten": np.linalg.pinv(L1) if r else np.zeros((0, d)),
            "complement": U[:, r:].T,
            "mean": m1,
        }
        stacked = np.concatenate([np.ravel(common[k], "F") for k in common_sizes(form)])
        node = np.concatenate([(L1 @ Q).ravel("F"), m1])
        x = ca.SX.sym("x", node.size)
        rows = made._terminal(x, stacked)[1]
        at = ca.Function("at", [x], [rows, ca.jacobian(rows, x)])
        values, jacobian = (np.array(y) for y in at(node))
        assert np.abs(values).max(initial=0) <= 1e-12  # any rotation of the factor is the target
        sigma = np.linalg.svd(jacobian, compute_uv=False)
        assert sigma.size == form.terminal_size
        assert sigma[-1] > 1e-3 * sigma[0]


def test_the_collocation_is_gauss_legendre_of_order_four():
    for degree in range(4):
        assert WEIGHTS @ NODES**degree == pytest.approx(1 / (degree + 1))
    for degree in range(2):
        assert RUNGE_KUTTA @ NODES**degree == pytest.approx(NODES ** (degree + 1) / (degree + 1))


def test_the_midpoint_rule_has_order_two():
    form = Form(2, 2, True, False, "A", 1, 1, False, stages=1)
    made = program(form)
    rng = np.random.default_rng(4)
    A, x = rng.standard_normal((2, 2)), rng.standard_normal((2, 3))
    common = np.zeros(sum(common_sizes(form).values()))

    def defect(h):
        window = np.concatenate([x.ravel("F"), A.ravel("F"), (expm(h * A) @ x).ravel("F")])
        return np.linalg.norm(np.array(made._stage(window, np.array([h, 1.0, 1.0]), common)[1]))

    # one step of a method of order 2 errs by h³
    assert defect(0.02) / defect(0.01) == pytest.approx(8.0, rel=0.05)
