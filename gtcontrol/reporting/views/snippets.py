"""How to compute a result again: the shell command, and Python code for small problems."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from ..._check import Array
from ...gaussian import Gaussian
from ...parameters import Parameters
from ...problem import zoo
from ...problem.bounds import Bounds
from ...problem.costs import ControlEnergy, Cost, KineticEnergy, MinimumTime
from ...problem.definitions import (
    CertificationProblem,
    ClosenessProblem,
    ComparisonProblem,
    DesignProblem,
    ExportProblem,
    FilterProblem,
    InspectionProblem,
    MixtureProblem,
    ReachabilityProblem,
    SimulationProblem,
    SteeringProblem,
    TrackingProblem,
    ValidationProblem,
)
from ...results.steering import Steering
from ...results.trajectory import Trajectory
from ...schedule import Schedule

__all__ = [
    "certifying",
    "command",
    "comparing",
    "designing",
    "exporting",
    "filtering",
    "following",
    "inspecting",
    "measuring",
    "reaching",
    "simulating",
    "steering",
    "tracking",
    "validating",
]

#: Arrays with more entries than this are not written out.
LARGEST = 16

#: How code begins that is too long to be written out.
_SAVED = 'import gtcontrol as gt\np = gt.load("FOLDER").problem\n'


def command(name: str) -> str:
    """Shell command that runs a problem of the zoo; empty for any other.

    A result knows the name of its problem, not the file that it came from.
    """
    return f"gtcontrol run {shlex.quote(name)}" if name in zoo.names() else ""


def steering(problem: SteeringProblem) -> str:
    """Python code that poses and solves the steering problem; from its saved values if large."""
    laws = _laws(start=problem.start, target=problem.target)
    if not laws:
        return _SAVED + (
            "plan = gt.steer(\n    p.start,\n    p.target,\n    horizon=p.horizon,\n"
            "    controls=p.controls,\n    cost=p.cost,\n    bounds=p.bounds,\n"
            "    method=p.method,\n)\nprint(plan.summary())\n"
        )
    options = [f"horizon={problem.horizon!r}", f"controls={problem.controls!r}"]
    options.append(f"cost={_cost(problem.cost)}")
    if problem.bounds:
        options.append(f"bounds={_bounds(problem.bounds)}")
    options.append(f"method={problem.method!r}")
    listed = "".join(f"    {option},\n" for option in options)
    return f"{laws}plan = gt.steer(\n    start,\n    target,\n{listed})\nprint(plan.summary())\n"


def simulating(problem: SimulationProblem) -> str:
    """Python code that runs the simulation; from saved values if large or time-varying."""
    saved = _SAVED + (
        "path = gt.simulate(p.start, p.schedule, p.horizon, layers=p.layers, tokens=p.tokens)\n"
        "print(path.summary())\n"
    )
    laws = _laws(start=problem.start)
    pieces = list(problem.schedule.pieces())
    if not laws or len(pieces) > 1 or not problem.schedule.piecewise_constant:
        return saved
    parameters = _parameters(pieces[0].law(0.0))
    if not parameters:
        return saved
    layers = "" if problem.layers is None else f", layers={problem.layers}"
    if problem.tokens is not None:
        layers += f", tokens=gt.{problem.tokens}"
    return (
        f"{laws}parameters = {parameters}\n"
        f"path = gt.simulate(start, parameters, {problem.horizon!r}{layers})\n"
        "print(path.summary())\n"
    )


def certifying(problem: CertificationProblem) -> str:
    """Python code that asks for the certificate; from its saved values if large."""
    saved = _SAVED + "answer = gt.certify(p.vertices, p.start)\nprint(answer.summary())\n"
    made = [_parameters(vertex) for vertex in problem.vertices]
    laws = {} if problem.start is None else {"start": problem.start}
    head = _laws(**laws)
    if not all(made) or not head:
        return saved
    given = made[0] if len(made) == 1 else f"[{', '.join(made)}]"
    start = ", start" if laws else ""
    return (
        f"{head}parameters = {given}\nanswer = gt.certify(parameters{start})\n"
        "print(answer.summary())\n"
    )


def comparing(problem: ComparisonProblem) -> str:
    """Python code that compares again; from its saved values if large or no filter's."""
    p = problem
    given = {"A": p.A, "C": p.C, "R": p.R, "noise": p.noise}
    shown = {k: v for k, v in given.items() if v is not None}
    head = _laws(**({} if p.start is None else {"start": p.start}))
    if not head or not p.filters or any(v.size > LARGEST for v in shown.values()):
        model = "p.A, p.C, p.R, p.noise"
        if not p.filters:
            eye = "[[float(i == j) for j in range(len(p.A))] for i in range(len(p.A))]"
            model = f"gt.Parameters(A=p.A, V={eye}, B=p.K / 2, noise=p.noise)"
        call = f"seen = gt.compare({model}, start=p.start, horizon=p.horizon)\n"
        return f"{_SAVED}{call}print(seen.summary())\n"
    listed = "".join(f"    {k}={_array(v)},\n" for k, v in shown.items())
    start = "" if p.start is None else "    start=start,\n"
    horizon = "" if p.horizon is None else f"    horizon={p.horizon!r},\n"
    return f"{head}seen = gt.compare(\n{listed}{start}{horizon})\nprint(seen.summary())\n"


def designing(problem: DesignProblem) -> str:
    """Python code that designs again; from its saved values if large."""
    p = problem
    near = "" if p.near is None else _parameters(p.near)
    arrays = [x for x in (p.V, p.complement) if x is not None]
    laws = _laws(target=p.target)
    if not laws or (p.near is not None and not near) or any(x.size > LARGEST for x in arrays):
        options = ("method", "V", "rate", "mean_rate", "bounds", "near", "complement")
        listed = "".join(f"    {name}=p.{name},\n" for name in (*options, "checks", "seed"))
        return f"{_SAVED}made = gt.design(\n    p.target,\n{listed})\nprint(made.summary())\n"
    given = {
        "method": repr(p.method),
        "V": "" if p.V is None else _array(p.V),
        "rate": "" if p.rate is None else repr(p.rate),
        "mean_rate": "" if p.mean_rate is None else repr(p.mean_rate),
        "bounds": _bounds(p.bounds) if p.bounds else "",
        "near": near,
        "complement": "" if p.complement is None else _array(p.complement),
        "checks": repr(p.checks),
        "seed": repr(p.seed),
    }
    listed = "".join(f"    {name}={text},\n" for name, text in given.items() if text)
    return f"{laws}made = gt.design(\n    target,\n{listed})\nprint(made.summary())\n"


def filtering(problem: FilterProblem) -> str:
    """Python code that filters again, from the saved measurements."""
    options = ("seeds", "value", "centred", "antithetic", "moment_matched")
    listed = "".join(f"    {name}=p.{name},\n" for name in options)
    rng = "p.seed" if problem.seed is not None else "0"  # a generator is not saved
    return (
        f"{_SAVED}run = gt.filter_by_attention(\n    p.model,\n    p.start,\n    p.measurements,\n"
        f"    tokens=p.counts,\n    rng={rng},\n{listed})\nprint(run.summary())\n"
    )


def measuring(problem: ClosenessProblem, times: Array) -> str:
    """Python code that measures again; from its saved values if large or time-varying."""
    p, layer = problem, problem.feedforward
    if not isinstance(layer.activation, str):
        return ""  # a function is not saved
    options = f"    times={_array(times)},\n    count={p.count},\n    seeds={p.seeds},\n"
    call = "seen = gt.closeness(\n    {},\n" + options + ")\nprint(seen.summary())\n"
    laws, parameters = _laws(start=p.start), _constant(p.schedule)
    weights = (layer.inner, layer.bias, layer.outer)
    if not laws or not parameters or any(w.size > LARGEST for w in weights):
        return _SAVED + call.format("p.start, p.schedule, p.feedforward, p.horizon")
    listed = "".join(f"    {_array(w)},\n" for w in weights)
    return (
        f"{laws}parameters = {parameters}\nlayer = gt.FeedForward(\n{listed}"
        f"    {layer.activation!r},\n)\n" + call.format(f"start, parameters, layer, {p.horizon!r}")
    )


def following(problem: MixtureProblem, times: Array) -> str:
    """Python code that follows the mixture again; from its saved values if large."""
    p = problem
    options = f"    times={_array(times)},\n    count={p.count},\n    seeds={p.seeds},\n"
    call = "seen = gt.follow_mixture(\n    {},\n" + options + ")\nprint(seen.summary())\n"
    names = {f"component_{k + 1}": law for k, law in enumerate(p.start.laws)}
    laws, parameters = _laws(**names), _constant(p.schedule)
    if not laws or not parameters:
        return _SAVED + call.format("p.start, p.schedule, p.horizon")
    return (
        f"{laws}start = gt.Mixture({_array(p.start.weights)}, [{', '.join(names)}])\n"
        f"parameters = {parameters}\n" + call.format(f"start, parameters, {p.horizon!r}")
    )


def tracking(problem: TrackingProblem, plan: Steering | Trajectory) -> str:
    """Python code that makes the plan and its feedback; the plan from its file if large."""
    p = problem
    made = steering(plan.problem) if isinstance(plan, Steering) else ""
    head = made.replace("print(plan.summary())\n", "")
    if not made or made.startswith(_SAVED):
        head = 'import gtcontrol as gt\nplan = gt.load("FOLDER").plan\n'
    given = {
        "weights": repr(dict(p.control_weights)),
        "state_weight": repr(p.state_weight),
        "terminal_weight": repr(p.terminal_weight),
        "perturbation": repr(p.perturbation),
        "samples": repr(p.samples),
        "seed": repr(p.seed),
    }
    listed = "".join(f"    {name}={text},\n" for name, text in given.items())
    controls = f"    controls={p.controls!r},\n"
    return f"{head}kept = gt.track(\n    plan,\n{controls}{listed})\nprint(kept.summary())\n"


def validating(problem: ValidationProblem) -> str:
    """Python code that moves the clouds again, from the saved problem."""
    layer = problem.feedforward
    if layer is not None and not isinstance(layer.activation, str):
        return ""  # a function is not saved
    options = (
        "counts", "seeds", "layers", "mask_self", "feedforward", "antithetic", "moment_matched",
        "closure", "rtol", "backend", "dtype",
    )  # fmt: skip
    listed = "".join(f"    {name}=p.{name},\n" for name in options)
    rng = "p.seed" if problem.seed is not None else "0"  # a generator is not saved
    return (
        f"{_SAVED}seen = gt.validate(\n    p.start,\n    p.schedule,\n    p.horizon,\n"
        f"    rng={rng},\n{listed})\nprint(seen.summary())\n"
    )


def exporting(problem: ExportProblem) -> str:
    """Python code that tries the network again, and makes it, from the saved result."""
    options = ("layers", "count", "exact", "mask_self", "dtype")
    listed = "".join(f"    {name}=p.{name},\n" for name in options)
    rng = "p.seed" if problem.seed is not None else "0"  # a generator is not saved
    return (
        f"{_SAVED}seen = gt.check_export(\n    p.schedule,\n    p.horizon,\n    start=p.start,\n"
        f"    rng={rng},\n"
        f"{listed})\nprint(seen.summary())\n"
        "network = seen.to_torch()  # a torch.nn.Module\n"
    )


def reaching(problem: ReachabilityProblem) -> str:
    """Python code that asks the reachability question; from its saved values if large."""
    laws = _laws(start=problem.start, target=problem.target)
    if not laws:
        return _SAVED + (
            "answer = gt.reachable(p.start, p.target, controls=p.controls)\n"
            "print(answer.summary())\n"
        )
    return (
        f"{laws}answer = gt.reachable(start, target, controls={problem.controls!r})\n"
        "print(answer.summary())\n"
    )


def inspecting(problem: InspectionProblem) -> str:
    """Python code that inspects the model again."""
    p = problem
    options = [f"input={p.input!r}", f"tokens={p.tokens}", f"sequences={p.sequences}"]
    if p.data:
        options.append(f"data={p.data!r}")
    if p.layers is not None:
        options.append(f"layers={p.layers}")
    options.append(f"rng={p.seed}")
    listed = "".join(f"    {option},\n" for option in options)
    return (
        "import gtcontrol as gt\n"
        f"seen = gt.pretrained.inspect(\n    {p.model!r},\n{listed})\nprint(seen.summary())\n"
    )


def _laws(**laws: Gaussian) -> str:
    if any(law.dim * max(law.rank, 1) > LARGEST for law in laws.values()):
        return ""
    lines = ["import gtcontrol as gt"]
    if any(law.rank == 0 for law in laws.values()):
        lines.insert(0, "import numpy as np")
    for name, law in laws.items():
        # An empty factor has no rows to show: its shape must be said.
        factor = _array(law.factor, "\n     ") if law.rank else f"np.zeros(({law.dim}, 0))"
        lines.append(f"{name} = gt.Gaussian(\n    {_array(law.mean)},\n    {factor},\n)")
    return "\n".join(lines) + "\n"


def _parameters(p: Parameters) -> str:
    given = {"A": p.A, "B": p.B, "V": p.V, "b": p.b, "noise": p.noise, "beta": p.beta}
    shown = {k: v for k, v in given.items() if v is not None and v.any()}
    if any(v.size > 2 * LARGEST for v in shown.values()):
        return ""
    if not shown:
        return f"gt.Parameters(dim={p.dim})"
    listed = "".join(f"    {k}={_array(v)},\n" for k, v in shown.items())
    return f"gt.Parameters(\n{listed})"


def _constant(schedule: Schedule) -> str:
    """Parameters that hold all the time; empty if they change, or are large."""
    pieces = list(schedule.pieces())
    if len(pieces) > 1 or not schedule.piecewise_constant or schedule.basis is not None:
        return ""
    return _parameters(pieces[0].law(0.0))


def _cost(cost: Cost) -> str:
    if isinstance(cost, KineticEnergy):
        return "gt.KineticEnergy()"
    if isinstance(cost, ControlEnergy):
        return f"gt.ControlEnergy(kinetic={cost.kinetic!r})"
    if isinstance(cost, MinimumTime):
        return f"gt.MinimumTime(bound={cost.bound!r}, norm={cost.norm!r})"
    raise TypeError(f"unknown cost {type(cost).__name__}.")


def _bounds(bounds: Bounds) -> str:
    given: Mapping[str, object] = {
        "entries": dict(bounds.entries),
        "norms": dict(bounds.norms),
        "trace": bounds.trace,
        "largest_eigenvalue": bounds.largest_eigenvalue,
    }
    return f"gt.Bounds({', '.join(f'{k}={v!r}' for k, v in given.items() if v)})"


def _array(values: Array, between: str = " ") -> str:
    """Array as nested lists, exact; `between` parts the rows of a matrix."""
    if values.ndim < 2:
        return repr((values + 0.0).tolist())
    return f"[{f',{between}'.join(_array(row) for row in values)}]"
