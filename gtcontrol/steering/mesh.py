"""Meshes: coarse for the starts, and finer where the generator is large."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from .._check import Array
from .course import Course, State
from .instance import Instance, Solution

__all__ = ["along", "first_mesh", "first_program", "refined_mesh", "with_intervals"]

#: The mesh of the starts has this part of the intervals asked for, but not fewer than four.
#: Attention alone changes its signs on the way, and a coarser mesh would miss when; where A
#: takes over, that matters less.
COARSE, COARSE_ATTENTION, COARSE_MIXED = 0.4, 0.35, 0.25

#: Largest ratio of the generator's size to its mean for which the first mesh is uniform.
STEEP = 3.0


def first_program(instance: Instance, solver: str) -> Instance:
    """The same problem on the mesh of the starts.

    With controls constant on each interval the midpoint rule makes the smallest program that
    tells the minima apart; fatrop needs the next node as an explicit function of this one.
    """
    form = instance.form
    part = COARSE
    if {"V", "B"} <= set(form.controls) and not instance.problem.bounds:
        part = COARSE_MIXED if "A" in form.controls else COARSE_ATTENTION
    count = min(max(4, math.ceil(part * form.intervals)), form.intervals)
    stages = 1 if form.points == 1 and solver == "ipopt" else 2
    return dataclasses.replace(
        instance, form=dataclasses.replace(form, intervals=count, stages=stages)
    )


def with_intervals(instance: Instance, count: int) -> Instance:
    """The same problem on another number of intervals, with two stages each."""
    form = dataclasses.replace(instance.form, intervals=count, stages=2)
    return dataclasses.replace(instance, form=form)


def first_mesh(course: Course, instance: Instance) -> Array:
    """Uniform, or finer where the generator of the course is many times its mean."""
    intervals = instance.form.intervals
    grid = np.linspace(0.0, 1.0, 4 * intervals + 1)
    states = [course.at(float(tau)) for tau in grid]
    speeds = np.array([_speed(s.factor, s.factor_rate, s.mean_rate) for s in states])
    if not speeds.max() > STEEP * speeds.mean():
        return np.full(intervals, 1.0 / intervals)
    return _equidistributed(grid, 0.5 * (speeds[1:] + speeds[:-1]), intervals)


def refined_mesh(solution: Solution, count: int) -> Array:
    """Widths of `count` intervals, placed where the generator of a solution is large."""
    speeds = [
        _speed(solution.factors[k], solution.factor_rates[k, 0], solution.mean_rates[k, 0])
        for k in range(solution.widths.size)
    ]
    edges = np.concatenate([[0.0], np.cumsum(solution.widths)])
    return _equidistributed(edges / edges[-1], np.array(speeds), count)


def _equidistributed(edges: Array, speeds: Array, intervals: int) -> Array:
    """Widths of a mesh with as much of 1 + speed/mean in each interval; speeds per old one."""
    widths = np.diff(edges)
    density = 1.0 + speeds / max(float(speeds @ widths), 1e-300)
    mass = np.concatenate([[0.0], np.cumsum(density * widths)])
    return np.diff(np.interp(np.linspace(0.0, mass[-1], intervals + 1), mass, edges))


def _speed(factor: Array, factor_rate: Array, mean_rate: Array) -> float:
    """Size of the generator: relative rate of the factor."""
    if not factor.shape[1]:
        return float(np.linalg.norm(mean_rate))
    return float(np.linalg.norm(factor_rate @ np.linalg.pinv(factor)))


def along(s: Solution, name: str) -> Course:
    """The course of a solution, for a start on another mesh."""
    edges = np.concatenate([[0.0], np.cumsum(s.widths)])

    def at(tau: float) -> State:
        k = int(np.clip(np.searchsorted(edges, tau, side="right") - 1, 0, s.widths.size - 1))
        theta = (tau - edges[k]) / s.widths[k]
        controls = {c: u[k].mean(axis=0) for c, u in s.controls.items()}
        return State(
            (1 - theta) * s.factors[k] + theta * s.factors[k + 1],
            (1 - theta) * s.means[k] + theta * s.means[k + 1],
            s.factor_rates[k].mean(axis=0) * s.time,
            s.mean_rates[k].mean(axis=0) * s.time,
            lambda: controls,
        )

    return Course(name, at, s.time)
