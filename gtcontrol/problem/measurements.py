"""What a filter is given: measurements that are constant between times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .. import _check
from .._check import Array
from ..errors import IncompatibleSchedule, InvalidShape, NotFinite

__all__ = ["Measurements"]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Measurements:
    """Measurements y(t), constant on each of T intervals.

    Of the measurement dy = C x dt + dv, the value on an interval is its increment divided by
    the length of the interval: the average of C x, plus noise of covariance R divided by that
    length.

    Parameters
    ----------
    times : (T + 1,) array
        Increasing times from 0 to the horizon.
    values : (T, p) array
        ``values[k]`` holds on [times[k], times[k + 1]); a vector (T,) is one measurement.
    states : (T + 1, d) array, optional
        The true states at these times, where they are known.
    forcing : (T, d) array, optional
        Known forcing f of the state, x' = A x + f, constant on each interval.

    Raises
    ------
    InvalidShape, NotFinite, IncompatibleSchedule
        If the arrays do not fit each other, hold nan or infinity (the message names the
        interval), or the times do not increase from 0.

    Examples
    --------
    >>> import gtcontrol as gt
    >>> y = gt.Measurements([0.0, 0.5, 1.0], [[0.3], [0.1]])
    >>> y.horizon, len(y)
    (1.0, 2)
    """

    times: Array
    values: Array
    states: Array | None
    forcing: Array | None

    def __init__(
        self,
        times: ArrayLike,
        values: ArrayLike,
        states: ArrayLike | None = None,
        forcing: ArrayLike | None = None,
    ) -> None:
        clock = _check.vector("times", times)
        if clock.size < 2 or clock[0] != 0:
            raise IncompatibleSchedule(
                "`times` must go from 0 to the horizon and hold at least two entries; it holds "
                f"{clock.size}" + (f" and starts at {clock[0]:g}." if clock.size else ".")
            )
        back = np.flatnonzero(np.diff(clock) <= 0)
        if back.size:
            k = int(back[0])
            raise IncompatibleSchedule(
                f"`times` must increase strictly; times[{k + 1}] = {clock[k + 1]:.6g} follows "
                f"times[{k}] = {clock[k]:.6g}."
            )
        count = clock.size - 1
        for name, value in (
            ("times", clock),
            ("values", _rows("values", values, count, "intervals")),
            ("states", None if states is None else _rows("states", states, count + 1, "times")),
            ("forcing", None if forcing is None else _rows("forcing", forcing, count, "intervals")),
        ):
            object.__setattr__(self, name, value)
        sizes = {x.shape[1] for x in (self.states, self.forcing) if x is not None}
        if len(sizes) > 1:
            raise InvalidShape(
                "`states` and `forcing` must have as many columns as there are states; they have "
                f"{sorted(sizes)}."
            )

    @property
    def horizon(self) -> float:
        """End of the last interval."""
        return float(self.times[-1])

    @property
    def steps(self) -> Array:
        """Lengths of the intervals, shape (T,)."""
        return np.diff(self.times)

    def __len__(self) -> int:
        """Number T of intervals."""
        return len(self.values)

    def __repr__(self) -> str:
        return (
            f"Measurements(intervals={len(self)}, measured={self.values.shape[1]}, "
            f"horizon={self.horizon:g})"
        )


def _rows(name: str, value: ArrayLike, count: int, what: str) -> Array:
    """Return a checked array with one row for each time or interval.

    Raises
    ------
    InvalidShape, NotFinite
        If it has another number of rows, or holds nan or infinity.
    """
    try:
        raw = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raw = np.zeros(())  # `_check` finds the words
    if raw.ndim in (1, 2) and not np.all(np.isfinite(raw)):
        k = int(np.argwhere(~np.isfinite(raw))[0][0])
        raise NotFinite(
            f"`{name}` holds {raw[k]} at index {k}; every entry must be finite. Leave out an "
            "interval without a measurement by joining it to its neighbour."
        )
    made = _check.array(name, value, (1, 2))
    made = made[:, None] if made.ndim == 1 else made
    if len(made) != count:
        raise InvalidShape(
            f"`{name}` must have {count} rows, one for each of the {what}; it has shape "
            f"{np.shape(value)}."
        )
    if not made.shape[1]:
        raise InvalidShape(f"`{name}` has no columns.")
    return made
