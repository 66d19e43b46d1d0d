"""A simpler propagation to compare with: what the first published experiments would do.

Moments of softmax weights are taken at the mean variance of the scores, the slope of a head is
(1 - w) κ V S B + w V with κ and the concentration of N keys, heads are independent of each other,
and sequences share nothing.
"""

from __future__ import annotations

import numpy as np

from gtcontrol.finite_attention.weights import weights as tables
from gtcontrol.finite_tokens import FiniteTokens
from gtcontrol.pretrained.propagation.attention import attention_moments
from gtcontrol.pretrained.propagation.layernorm import normalise
from gtcontrol.pretrained.propagation.mlp import mlp_moments


def attention(weights, mean, S, count):
    """Mean, slope and noise."""
    of = attention_moments(weights, mean, S, FiniteTokens(count))
    field = attention_moments(weights, mean, S, None)
    alone = tables(count - 1).moments(None, np.sqrt(of.logit_variance))
    d = weights.width
    centre, K, noise = weights.output_bias.astype(float), np.zeros((d, d)), np.zeros((d, d))
    for h in range(weights.heads):
        V, w, kappa = weights.V(h), of.self_weight[h], alone.tilt[h]
        q = weights.B(h) @ mean + weights.beta(h)
        centre = centre + V @ (mean + (1 - w) * kappa * S @ q) + weights.value_offset(h)
        K += (1 - w) * kappa * weights.output_of(h) @ field.rows[h] + w * V
        noise += alone.squares[h] * V @ S @ V.T
    return centre, K, noise


def pass_block(block, mean, S, count):
    """Mean and covariance after a block."""
    block = block.folded()
    post = block.placement == "post"
    u, U, J = _norm(None if post else block.norm_attention, mean, S)
    centre, K, noise = attention(block.attention, u, U, count)
    mixed = K @ J @ S
    mean, S = mean + centre, S + mixed + mixed.T + K @ U @ K.T + noise
    if post:
        mean, S, _ = _norm(block.norm_attention, mean, S)
    v, W, J = _norm(None if post else block.norm_mlp, mean, S)
    net = mlp_moments(block.mlp, v, W)
    mixed = net.slope @ J @ S
    mean, S = mean + net.mean, S + mixed + mixed.T + net.covariance
    if post:
        mean, S, _ = _norm(block.norm_mlp, mean, S)
    return mean, S


def _norm(norm, mean, S):
    if norm is None:
        return mean, S, np.eye(len(mean))
    return normalise(mean, S, norm.weight.astype(float), norm.bias.astype(float), norm.epsilon)
