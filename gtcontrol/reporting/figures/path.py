"""The path of the law: covariance ellipses and token clouds, or bands when it is a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..._check import Array
from ...gaussian import Gaussian
from ...results.steering import Steering
from ...results.trajectory import Trajectory
from ...status import Status
from ..views.attempts import arrives, stands_in
from ..wording import count, error, number
from .canvas import BLACK, BLUE, RED, TIME, decorate, figure, time_bar, title
from .plane import Plane, plane_of
from .sampling import Samples, sample

__all__ = ["Scene", "draw", "steering", "trajectory"]

#: Laws drawn as ellipses between start and end; clouds drawn; dots drawn in each cloud.
SNAPSHOTS, CLOUDS, DOTS = 6, 3, 400

#: Lowest and highest frame of a picture with two axes (inches), and what its margins take.
LOW, HIGH, WIDE, MARGINS = 2.6, 5.6, 6.2, 1.5


@dataclass(frozen=True, eq=False)
class Scene:
    """What is drawn: laws along a path, and where it should end."""

    title: str
    start: Gaussian
    target: Gaussian | None
    samples: Samples
    snapshots: tuple[float, ...]
    laws: tuple[Gaussian, ...]
    clouds: tuple[tuple[float, Array], ...] = ()
    clock: str = "time t"

    @property
    def last(self) -> float:
        """End of the drawn path."""
        return float(self.samples.times[-1])


def steering(result: Steering) -> Figure:
    """Path of a plan from start to target, with its token clouds."""
    miss = error(result.replay_error)
    if result.status is Status.SUCCESS:
        finding = f"Arrives: replay error {miss}"
    elif not np.isfinite(result.replay_error):
        finding = f"{result.status.name}: the replay of the plan does not get to the end"
    elif stands_in(result):
        finding = f"{result.status.name}: an exact plan stands in for the optimum, and arrives"
    else:
        verb = "arrives to within" if arrives(result) else "misses the target by"
        finding = f"{result.status.name}: the plan {verb} {miss} (relative)"
    scene = _scene(result.trajectory, finding)
    clouds: tuple[tuple[float, Array], ...] = ()
    if result.tokens is not None and result.tokens.times.size:
        times, stored = result.tokens.times, result.tokens.clouds
        chosen = np.unique(np.linspace(0, times.size - 1, CLOUDS).round().astype(int))
        clouds = tuple((float(times[i]), stored[i][:DOTS]) for i in chosen)
    return draw(replace(scene, target=result.problem.target, clouds=clouds))


def trajectory(result: Trajectory) -> Figure:
    """Path of a simulated law."""
    if result.status is Status.BLOW_UP:
        finding = f"Blows up at T* = {number(result.blow_up_time)}"
    elif result.status is Status.SUCCESS:
        finding = f"Reaches the horizon {number(result.problem.horizon)}"
        if result.problem.layers is not None:
            finding = f"Through {count(result.problem.layers, 'layer')}"
        if result.problem.start.trace or result.final.trace:
            ends = [number(g.trace, 3) for g in (result.problem.start, result.final)]
            finding += f": total variance {ends[0]} → {ends[1]}"
    else:
        finding = f"{result.status.name} at t = {number(float(result.times[-1]))}"
    return draw(_scene(result, finding))


def _scene(path: Trajectory, finding: str) -> Scene:
    samples = sample(path, drawable=True)
    if samples.times[-1] < path.times[-1]:
        finding += f"; drawn up to t = {number(float(samples.times[-1]), 4)}"
    if path.interpolant is None:
        times = samples.thin(SNAPSHOTS).times
    else:
        times = np.linspace(0.0, samples.times[-1], SNAPSHOTS)
    laws = tuple(path.at(float(t)) for t in times)
    clock = "time t" if path.problem.layers is None else "time t (layers are markers)"
    snapshots = tuple(float(t) for t in times)
    return Scene(finding, path.problem.start, None, samples, snapshots, laws, clock=clock)


def draw(scene: Scene) -> Figure:
    """Draw a scene in the plane, or on the line, that suits it."""
    target = scene.laws[-1] if scene.target is None else scene.target
    plane = plane_of([scene.start, *scene.laws, target], target)
    fig = figure(8.0, 4.2 if plane.flat else _height(plane, [scene.start, *scene.laws, target]))
    title(fig, scene.title)
    ax = fig.add_subplot()
    if plane.flat:
        _draw_line(ax, scene, plane)
    else:
        _draw_plane(ax, scene, plane)
        if scene.last > 0:
            time_bar(fig, ax, scene.last, scene.clock)
    handles = _legend(scene, plane.flat)
    fig.legend(
        handles=handles,
        loc="outside lower center",
        ncols=min(len(handles), 3),
        fontsize=9,
        frameon=False,
    )
    return fig


def _height(plane: Plane, laws: Sequence[Gaussian]) -> float:
    """Height of the figure whose frame has the shape of what is drawn."""
    points = np.concatenate([plane.outline(law, 2.0) for law in laws])
    width, height = np.ptp(points, axis=0)
    return MARGINS + float(np.clip(WIDE * height / width if width else HIGH, LOW, HIGH))


def _draw_plane(ax: Axes, scene: Scene, plane: Plane) -> None:
    layered = scene.clock != "time t"
    for t, cloud in scene.clouds:
        x, y = plane.coordinates(cloud).T
        ax.scatter(x, y, s=4, color=_colour(t, scene), alpha=0.35, linewidths=0, zorder=1)
    x, y = plane.coordinates(scene.samples.means).T
    marker = "o" if layered or x.size == 1 else None
    ax.plot(x, y, color=BLACK, lw=1.2, marker=marker, ms=2.5, zorder=4)
    for t, law in zip(scene.snapshots[1:], scene.laws[1:], strict=True):
        _ellipses(ax, plane, law, _colour(t, scene), "-", 1.1)
    _ellipses(ax, plane, scene.start, BLUE, "-", 2.2)
    if scene.target is not None:
        _ellipses(ax, plane, scene.target, RED, "--", 2.2)
    decorate(ax, *plane.labels)
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.05)


def _ellipses(ax: Axes, plane: Plane, law: Gaussian, colour: object, style: str, w: float) -> None:
    for radius, width in ((1.0, w), (2.0, 0.6 * w)):
        x, y = plane.outline(law, radius).T
        ax.plot(x, y, color=colour, ls=style, lw=width, zorder=5 if style == "--" else 3)
    x, y = plane.coordinates(law.mean)
    marker = "X" if style == "--" else "o"
    ax.plot([x], [y], marker=marker, color=colour, ms=3 * w, mec="white", mew=0.5, zorder=6)


def _draw_line(ax: Axes, scene: Scene, plane: Plane) -> None:
    """One direction only: position against time, with bands of one and two deviations."""
    times = scene.samples.times
    center = plane.coordinates(scene.samples.means)[:, 0]
    spread = plane.spread(scene.samples.factors)
    layered = scene.clock != "time t"
    for radius, alpha in ((2.0, 0.15), (1.0, 0.3)):
        low, high = center - radius * spread, center + radius * spread
        ax.fill_between(times, low, high, color=BLUE, alpha=alpha, lw=0, zorder=1)
    ax.plot(times, center, color=BLACK, lw=1.2, marker="o" if layered else None, ms=3, zorder=3)
    for t, cloud in scene.clouds:
        y = plane.coordinates(cloud)[:, 0]
        ax.scatter(np.full(y.size, t), y, s=7, color=BLACK, alpha=0.25, linewidths=0, zorder=2)
    _bars(ax, plane, scene.start, 0.0, BLUE, "-")
    if scene.target is not None:
        _bars(ax, plane, scene.target, scene.last, RED, "--")
    decorate(ax, "time t", plane.labels[0])
    ax.margins(0.04)


def _bars(ax: Axes, plane: Plane, law: Gaussian, t: float, colour: str, style: str) -> None:
    center = float(plane.coordinates(law.mean)[0])
    spread = float(plane.spread(law.factor))
    for radius, width in ((2.0, 1.3), (1.0, 2.6)):
        ends = [center - radius * spread, center + radius * spread]
        ax.plot([t, t], ends, color=colour, ls=style, lw=width, marker="_", ms=11, zorder=5)
    marker = "X" if style == "--" else "o"
    ax.plot([t], [center], marker=marker, color=colour, ms=7, mec="white", mew=0.5, zorder=6)


def _colour(t: float, scene: Scene) -> tuple[float, ...]:
    share = min(t / scene.last, 1.0) if scene.last else 0.0
    return tuple(float(x) for x in TIME(share))


def _legend(scene: Scene, flat: bool) -> Sequence[Line2D]:
    rings = " (1σ, 2σ)" if scene.samples.factors.shape[2] else ""
    handles = [Line2D([], [], color=BLUE, lw=2.2, marker="o", label=f"start{rings}")]
    if scene.target is not None:
        handles.append(
            Line2D([], [], color=RED, lw=2.2, ls="--", marker="X", label=f"target{rings}")
        )
    if rings and flat:
        handles.append(Line2D([], [], color=BLUE, lw=7, alpha=0.3, label=f"law in time{rings}"))
    elif rings:
        handles.append(
            Line2D([], [], color=TIME(0.6), lw=1.1, label=f"law in time{rings}, colour = time")
        )
    handles.append(Line2D([], [], color=BLACK, lw=1.2, label="path of the mean"))
    if scene.clouds:
        colour = BLACK if flat else TIME(0.6)
        handles.append(
            Line2D([], [], color=colour, marker=".", ls="", label="tokens moved by softmax")
        )
    return handles
