"""The kind "track": feedback that brings perturbed starts back to a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ...problem.bounds import parse_controls
from ...problem.expectations import Expect
from ...problem.messages import fail, located
from ...problem.schema import Approximate, Count, NonNegative, Number, Positive, Table, Text, Whole
from ...problem.sources import GaussianTable
from ...problem.tables import LetterTable
from ...progress import Progress
from ...results.steering import Steering
from ...results.tracking import Tracking
from ...status import Status
from .base import KindDocument, Source, Task
from .steer import SteerDocument, SteerTable

__all__ = ["ABOUT", "DOCUMENT", "TEMPLATE"]

ABOUT = "which feedback brings perturbed starts back to a plan, and how large may they be?"

TEMPLATE = """\
# Which feedback keeps a Gaussian on its plan?  The plan is made as in a file of kind = "steer";
# then a linear-quadratic regulator along it is tried on perturbed starts.  Check this file with
# `gtcontrol check FILE`, solve it with `gtcontrol run FILE`.  What is commented out shows the
# default or another way.

kind = "track"
title = "Stretch and shift, with feedback"
description = "What is steered and kept on its way, in a few words."

# The law of the tokens at time 0: a mean, and a covariance or a factor L (covariance L Lᵀ).
[start]
mean = [0.0, 0.0]
covariance = [[1.0, 0.0], [0.0, 1.0]]

# The law at the horizon; its covariance must have the same rank.
[target]
mean = [1.0, -1.0]
covariance = [[2.0, 0.5], [0.5, 0.5]]

# The plan: all that a file of kind = "steer" may say in [steer].
[steer]
horizon = 1.0
controls = "AVBb"

[steer.cost]
kind = "control-energy"

# [steer.bounds]             # are kept by the feedback, which is cut to them
# entries = {A = 2.0, b = 5.0}
# norms = {V = 3.0}

[track]
perturbation = 0.05          # relative size of the displacement of mean and factor
samples = 50                 # perturbed starts
seed = 0                     # of their directions
# controls = "Ab"            # what feedback may change; by default all that the plan uses
# state_weight = 1.0         # of the squared distance to the plan, in time
# terminal_weight = 100.0    # of the squared distance at the end
# weights = {A = 1.0, b = 0.5}   # of squared corrections; by default from the sizes of the plan

# What you expect of the result, if anything; the exit code is 1 if it does not come true.
[expect]
status = "SUCCESS"
ratio_at_least = 10.0        # median distance without feedback over that with it
tolerated_at_least = 0.1     # size up to which 90 % of the samples end closer
# tolerated_tenfold_at_least = 0.1
# saturated_at_most = 0.0    # share of the time in which controls are cut to their bounds
"""


class TrackTable(Table):
    """The arguments of :func:`gtcontrol.track`."""

    perturbation: Positive = 0.05
    samples: Count = 50
    seed: Whole = 0
    controls: Text | None = None
    weights: LetterTable = LetterTable()
    state_weight: NonNegative | None = None
    terminal_weight: Positive | None = None


class TrackExpect(Expect):
    """What is expected of the plan and of its feedback."""

    status: Literal["SUCCESS", "INEFFECTIVE", "UNRESOLVED"] | None = None
    cost: Approximate | None = None
    cost_at_most: Number | None = None
    ratio: Approximate | None = None
    ratio_at_least: NonNegative | None = None
    ratio_at_most: NonNegative | None = None
    tolerated_at_least: NonNegative | None = None
    tolerated_at_most: NonNegative | None = None
    tolerated_tenfold_at_least: NonNegative | None = None
    saturated_at_most: NonNegative | None = None
    saturated_at_least: NonNegative | None = None
    replay_error_at_most: NonNegative | None = None


class TrackDocument(KindDocument):
    """A file of kind "track"."""

    kind: Literal["track"]
    start: GaussianTable
    target: GaussianTable
    steer: SteerTable = SteerTable()
    track: TrackTable = TrackTable()
    expect: TrackExpect = TrackExpect()

    def prepare(self, source: Source) -> Task:
        """Build and check all values."""
        steering = SteerDocument(
            kind="steer", start=self.start, target=self.target, steer=self.steer
        ).prepare(source)
        controls = parse_controls(self.steer.controls)
        if self.track.controls is not None:
            with located("`track.controls`"):
                controls = parse_controls(self.track.controls)
        for letter in self.track.weights.build():
            if letter not in controls:
                fail(f"track.weights.{letter}", f"is given, but the controls are {controls}.")
        return TrackTask(self.expect, source.name, steering, self.track)


DOCUMENT = TrackDocument


@dataclass(frozen=True)
class TrackTask(Task):
    """The plan to be made, and the feedback."""

    expect: TrackExpect
    name: str
    steering: Task
    table: TrackTable

    @property
    def about(self) -> str:
        """Kind, dimension, rank and controls."""
        return self.steering.about.replace("steer", "track", 1)

    def run(self, progress: Progress) -> Tracking | Steering:
        """Make the plan, then its feedback; a plan that does not arrive is returned itself."""
        from ...comparison.feedback.tracking import track  # the integrator is loaded only to run

        plan = self.steering.run(lambda fraction, text: progress(0.4 * fraction, text))
        if not isinstance(plan, Steering):
            raise TypeError(f"a plan was expected, not {type(plan).__name__}.")
        if not plan.answered:
            return plan
        t = self.table
        try:
            return track(
                plan,
                controls=t.controls,
                weights=t.weights.build(),
                state_weight=t.state_weight,
                terminal_weight=t.terminal_weight,
                perturbation=t.perturbation,
                samples=t.samples,
                seed=t.seed,
                progress=lambda fraction, text: progress(0.4 + 0.6 * fraction, text),
                name=self.name,
            )
        except KeyboardInterrupt:
            # The plan is whole, but the question of the file is not answered.
            return replace(plan, status=Status.INTERRUPTED)

    def observe(self, result: Tracking | Steering) -> Mapping[str, Any]:
        """Values by the names that ``[expect]`` uses."""
        if isinstance(result, Steering):
            names = ("ratio", "tolerated", "tolerated_tenfold", "saturated", "replay_error")
            return {"status": result.status.name, "cost": result.cost, **dict.fromkeys(names)}
        return {
            "status": result.status.name,
            "cost": result.plan.cost if isinstance(result.plan, Steering) else None,
            "ratio": result.ratio,
            "tolerated": result.tolerated,
            "tolerated_tenfold": result.tolerated_tenfold,
            "saturated": result.level.saturated,
            "replay_error": result.replay_error,
        }
