"""Exact derivatives of the program, laid out from those of one interval.

CasADi would differentiate the whole program by graph colouring; differentiating one
interval symbolically and copying its entries along the horizon is several times faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from .form import Form

__all__ = ["Block", "LaidOut", "lay_out", "stage_blocks", "terminal_blocks"]


@dataclass(frozen=True)
class Block:
    """A CasADi function that returns the nonzeros of a sparse matrix, and their pattern."""

    function: Any
    rows: tuple[int, ...]
    columns: tuple[int, ...]


@dataclass(frozen=True)
class LaidOut:
    """A block placed in the large matrix at (row, column), its nonzeros as an expression."""

    block: Block
    nonzeros: Any
    places: tuple[tuple[int, int], ...]


def _block(name: str, arguments: list[Any], matrix: Any) -> Block:
    rows, columns = matrix.sparsity().get_triplet()
    nonzeros = ca.vertcat(*matrix.nonzeros()) if matrix.nnz() else ca.SX(0, 1)
    return Block(ca.Function(name, arguments, [nonzeros]), tuple(rows), tuple(columns))


def stage_blocks(stage: Any, sign: int) -> tuple[Any, Block, Block, Block]:
    """Gradient function, Jacobian blocks of end and rows, and Hessian block of one interval.

    The end enters the continuity rows with the given sign.
    """
    z, per, common = stage.sx_in()
    cost, end, rows = stage(z, per, common)
    arguments = [z, per, common]
    gradient = ca.Function("stage_gradient", arguments, [ca.densify(ca.gradient(cost, z))])
    ends = _block("stage_end", arguments, ca.jacobian(sign * end, z))
    paths = _block("stage_rows", arguments, ca.jacobian(rows, z))
    lam_f = ca.SX.sym("lam_f")
    lam_end, lam_rows = ca.SX.sym("lam_end", end.numel()), ca.SX.sym("lam_rows", rows.numel())
    lagrangian = lam_f * cost + sign * ca.dot(lam_end, end) + ca.dot(lam_rows, rows)
    hessian = ca.triu(ca.hessian(lagrangian, z)[0])
    return (
        gradient,
        ends,
        paths,
        _block("stage_hessian", [*arguments, lam_f, lam_end, lam_rows], hessian),
    )


def terminal_blocks(terminal: Any) -> tuple[Any, Block, Block]:
    """Gradient function, Jacobian block and Hessian block of the last node."""
    node, common = terminal.sx_in()
    cost, rows = terminal(node, common)
    gradient = ca.Function("end_gradient", [node, common], [ca.densify(ca.gradient(cost, node))])
    jacobian = _block("end_rows", [node, common], ca.jacobian(rows, node))
    lam_f, lam = ca.SX.sym("lam_f"), ca.SX.sym("lam", rows.numel())
    lagrangian = lam_f * cost + ca.dot(lam, rows)
    hessian = ca.triu(ca.hessian(lagrangian, node)[0])
    return gradient, jacobian, _block("end_hessian", [node, common, lam_f, lam], hessian)


def lay_out(shape: tuple[int, int], parts: list[LaidOut], identity: list[tuple[int, int]]) -> Any:
    """Place copies of blocks, and ones at the places of `identity`, in a sparse matrix.

    Where blocks overlap, they are summed.
    """
    rows, columns = [], []
    for part in parts:
        for top, left in part.places:
            rows.append(top + np.asarray(part.block.rows, dtype=int))
            columns.append(left + np.asarray(part.block.columns, dtype=int))
    ones = np.asarray(identity, dtype=int).reshape(-1, 2)
    row = np.concatenate([*rows, ones[:, 0]]).tolist()
    column = np.concatenate([*columns, ones[:, 1]]).tolist()
    nonzeros = ca.vertcat(*[part.nonzeros for part in parts], ca.DM.ones(len(identity)))
    count = len(row)
    sparsity, _ = ca.Sparsity.triplet(*shape, row, column, False)
    place = {rc: i for i, rc in enumerate(zip(*sparsity.get_triplet(), strict=True))}
    target = [place[rc] for rc in zip(row, column, strict=True)]
    if sparsity.nnz() == count:
        order = np.argsort(target)
        return ca.MX(sparsity, nonzeros[order.tolist()])
    gather = ca.DM.triplet(target, list(range(count)), ca.DM.ones(count), sparsity.nnz(), count)
    return ca.MX(sparsity, ca.mtimes(gather, nonzeros))


def stage_places(form: Form, tops: list[int]) -> tuple[tuple[int, int], ...]:
    """Places of one block per interval, below the given first rows."""
    return tuple((top, k * form.stage_size) for k, top in enumerate(tops))
