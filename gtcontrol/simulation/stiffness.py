"""When an explicit integrator takes small steps for its stability, not for accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["STIFFEST", "Watch"]

#: An implicit integrator factorises matrices of this order at most.
STIFFEST = 400

#: Steps times the largest rate, where stability is felt (that of DOP853 ends at 6.1); at its
#: tight tolerances, accuracy alone asks for much shorter steps.
STABLE = 2.0

#: Steps in a row that must reach it ...
PATIENCE = 15

#: ... while there are so many to go that an implicit integrator pays.
AHEAD = 2000


class Watch:
    """Tell from the steps of DOP853 whether the problem is stiff.

    The last stage and the result of a step are two states at the same time; the difference
    of the rates there over that of the states estimates the largest eigenvalue of the
    Jacobian.  (Hairer, Nørsett, Wanner 1993, II.10 and IV.2.)
    """

    def __init__(self) -> None:
        self._in_a_row = 0

    def sees(self, solver: Any) -> bool:
        """Look at the step that was just accepted."""
        last = solver.n_stages - 1
        scale = solver.atol + solver.rtol * np.abs(solver.y)
        moved = solver.h_previous * (solver.A[last, :last] @ solver.K[:last])
        states = float(np.max(np.abs(solver.y - solver.y_old - moved) / scale))
        rates = float(np.max(np.abs(solver.K[-1] - solver.K[last]) / scale))
        stiff = states > 0 and solver.h_previous * rates > STABLE * states
        self._in_a_row = self._in_a_row + 1 if stiff else 0
        ahead = (solver.t_bound - solver.t) / solver.h_previous
        return self._in_a_row >= PATIENCE and ahead > AHEAD
