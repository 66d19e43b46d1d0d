"""How a computation can end: a closed list, each ending with its advice."""

from __future__ import annotations

from enum import Enum

__all__ = [
    "Definiteness",
    "KalmanVerdict",
    "LayerVerdict",
    "RiccatiStatus",
    "Status",
    "TokenVerdict",
    "Verdict",
]


class Status(Enum):
    """Ending of a simulation, of a steering problem, of a design or of a feedback.

    The value of each member is the sentence that a user reads.  Only
    :attr:`SUCCESS` and :attr:`BLOW_UP` answer the question that was asked
    (see :attr:`answered`).
    """

    SUCCESS = "The question was answered and the answer was checked."
    BLOW_UP = "The covariance leaves every bound before the horizon: see `blow_up_time`."
    OVERFLOW = (
        "Tokens or deviations grew beyond 1e100, whose powers leave double precision, without "
        "finite-time blow-up; shorten the horizon or rescale the tokens."
    )
    UNDERFLOW = (
        "An eigenvalue of the covariance shrank below the range of double precision, so its rank "
        "could no longer be told; the part that was computed is kept. Shorten the horizon, or "
        "start with a lower rank."
    )
    STEP_LIMIT = (
        "Ran out of steps before the horizon; the part that was computed is kept. "
        "Raise `max_steps` or loosen `rtol`."
    )
    STEP_SIZE = (
        "The step size fell to rounding level before the horizon; the part that was computed "
        "is kept. Give the schedule's discontinuities as `breakpoints`."
    )
    NOT_CONVERGED = (
        "No optimum was found that stands the check; the table of attempts in the report (in "
        "Python `explain()`) says how the solver ended. Try more `intervals`, more `starts`, "
        "looser bounds, or rescale the tokens."
    )
    INFEASIBLE = (
        "The solver found no plan that satisfies the constraints: the report (in Python "
        "`explain()`) names the worst ones; loosen the bounds or lengthen the horizon."
    )
    REPLAY_FAILED = (
        "The solver converged, but its plan misses the target when it is simulated; "
        "raise `intervals` or `refinements`."
    )
    UNCONFIRMED = (
        "The parameters were found, but simulations from random starts do not approach the target "
        "at the rate that is claimed; the table of checks says which. Ask for a lower `rate`."
    )
    DISAGREEMENT = (
        "Two independent computations of the same answer differ by more than their tolerance: see "
        "`agreement`. Shorten the horizon, or rescale states and measurements."
    )
    INEFFECTIVE = (
        "The feedback does not bring perturbed starts closer to the target than the plan alone "
        "does: see where its controls have no authority; allow more controls, or looser bounds."
    )
    UNRESOLVED = (
        "The closed loop is too fast for the mesh on which samples are moved, so their distances "
        "are not to be trusted; lower `terminal_weight`."
    )
    INTERRUPTED = "Stopped by the user; what was found so far is kept."

    @property
    def answered(self) -> bool:
        """Whether the question was answered (exit code 0 of the command line)."""
        return self in (Status.SUCCESS, Status.BLOW_UP)


class KalmanVerdict(Enum):
    """What the error covariance of a filter, S' = A S + S Aᵀ - S Cᵀ R⁻¹ C S + Q, does in time.

    The value of each member is the sentence that a user reads.
    """

    CONVERGES = "The covariance converges, exponentially fast."
    MARGINAL = (
        "The covariance converges more slowly than any exponential: an eigenvalue on the imaginary "
        "axis, which arbitrarily small changes of the data move to either side."
    )
    CONTINUUM = (
        "There is a continuum of steady states: modes on the imaginary axis are not seen by any "
        "measurement, and the start decides."
    )
    PERIODIC = "There is no limit: the covariance turns for ever."
    UNBOUNDED = "The covariance grows without bound, but not in finite time."
    BLOWS_UP = "The covariance blows up in finite time: a conjugate point of the Riccati equation."
    UNDECIDED = "What the covariance does in the long run is not decided."

    @property
    def answered(self) -> bool:
        """Whether the question was answered (exit code 0 of the command line)."""
        return self is not KalmanVerdict.UNDECIDED


class TokenVerdict(Enum):
    """How clouds of finitely many softmax tokens stand to the Gaussian flow.

    The value of each member is the sentence that a user reads.
    """

    FOLLOWS = (
        "The clouds follow the Gaussian law: they miss it by no more than about twice the error of "
        "as many independent draws."
    )
    APPROACHES = (
        "The clouds approach the Gaussian law as their number of tokens grows, but miss it by more "
        "than as many independent draws do."
    )
    BIASED = (
        "The clouds miss the Gaussian law by more than independent draws do, and more tokens do "
        "not help as they should: attention over finitely many tokens is not its mean field here; "
        "see the stamps."
    )
    DEPARTS = (
        "The Gaussian law grows beyond what finitely many tokens can do before the horizon; every "
        "cloud leaves it earlier."
    )
    UNDECIDED = "Too few clouds arrived to say how they stand to the Gaussian law."


class LayerVerdict(Enum):
    """How one layer of a pretrained model stands to the Gaussian theory.

    The value of each member is the sentence that a user reads.
    """

    HOLDS = "Tokens are near Gaussian after the layer, and their moments are predicted."
    MOMENTS = "The moments are predicted, although the tokens are not near Gaussian."
    SHAPE = "Tokens are near Gaussian, but their moments are not predicted."
    FAILS = "Tokens are not near Gaussian, and their moments are not predicted."
    UNDECIDED = "Too few sequences to tell whether the moments are predicted; take more."


class Verdict(Enum):
    """What a certificate says about the covariance under constant parameters.

    The value of each member is the sentence that a user reads; the certificate's own
    statement says what to, which rank, from where, or why not, and whether it is proved.
    """

    CONVERGES = "The covariance converges."
    BOUNDED = "The covariance stays bounded."
    BLOWS_UP = "The covariance blows up in finite time."
    UNBOUNDED = "The covariance grows without bound, but not in finite time."
    BLOW_UP_DATA_EXIST = "There are starts, named in the statement, that blow up in finite time."
    LOCALLY_STABLE = "There is an equilibrium that attracts all covariances near it."
    MARGINAL = (
        "The answer changes with arbitrarily small changes of the data: an eigenvalue on the "
        "imaginary axis, or a tangency."
    )
    UNDECIDED = "No theorem that is tried here decides."

    @property
    def answered(self) -> bool:
        """Whether the question was answered (exit code 0 of the command line)."""
        return self is not Verdict.UNDECIDED


class RiccatiStatus(Enum):
    """What is known of the stabilising solution of a Riccati equation.

    The value of each member is the sentence that a user reads; the solution's own reason names
    the mode and the direction that break it.
    """

    SUCCESS = "The stabilising solution was found and checked."
    MARGINAL = (
        "There is no stabilising solution, because a mode of the closed loop lies on the boundary "
        "of stability; the solution that is given, if any, leaves only such modes there."
    )
    NO_STABILIZING_SOLUTION = "There is no stabilising solution."
    ILL_CONDITIONED = (
        "No solution could be confirmed with the precision and the order that are allowed; "
        "rescale the states, or reduce the model."
    )

    @property
    def answered(self) -> bool:
        """Whether the question was answered (exit code 0 of the command line)."""
        return self is not RiccatiStatus.ILL_CONDITIONED


class Definiteness(Enum):
    """Signs of the eigenvalues of a symmetric matrix, in words."""

    POSITIVE_DEFINITE = "positive definite"
    POSITIVE_SEMIDEFINITE = "positive semidefinite"
    INDEFINITE = "indefinite"
    NEGATIVE_SEMIDEFINITE = "negative semidefinite"
    NEGATIVE_DEFINITE = "negative definite"
    ZERO = "zero"
