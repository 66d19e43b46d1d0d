"""Points of linear matrix inequalities, blended and rescaled."""

from __future__ import annotations

from .model import Point

__all__ = ["blend", "rescaled"]


def blend(first: Point, second: Point, share: float) -> Point:
    """Convex combination of two points, each with or each without Λ."""
    one, other = first.Lam, second.Lam
    return Point(
        (1 - share) * first.W + share * second.W,
        None if one is None or other is None else (1 - share) * one + share * other,
        (1 - share) * first.Z + share * second.Z,
        (1 - share) * first.quadratic + share * second.quadratic,
        (1 - share) * first.linear + share * second.linear,
        (1 - share) * first.constant + share * second.constant,
    )


def rescaled(point: Point, factor: float) -> Point:
    """The same inequality for factor · y."""
    return Point(
        factor * point.W,
        None if point.Lam is None else factor * point.Lam,
        factor * point.Z,
        point.quadratic / factor,
        point.linear,
        factor * point.constant,
    )
