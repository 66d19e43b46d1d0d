"""A Transformer in plain NumPy, and moments of what it makes of many tokens."""

from __future__ import annotations

import numpy as np
from scipy.special import erf


def layer_norm(tokens, norm):
    """LayerNorm over the last axis."""
    centred = tokens - tokens.mean(axis=-1, keepdims=True)
    size = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + norm.epsilon)
    return norm.weight * centred / size + norm.bias


def gelu(u):
    """u Φ(u)."""
    return 0.5 * u * (1 + erf(u / np.sqrt(2)))


def attend(weights, tokens, *, mask_self=False):
    """What attention adds to tokens (T, N, d), head by head, with all biases."""
    added = np.broadcast_to(weights.output_bias, tokens.shape).astype(float)
    k = weights.query.shape[1]
    for h in range(weights.query.shape[0]):
        q = tokens @ weights.query[h].T + weights.query_bias[h]
        y = tokens @ weights.key[h].T + weights.key_bias[h]
        v = tokens @ weights.value[h].T + weights.value_bias[h]
        scores = weights.scale * q @ np.swapaxes(y, -1, -2)
        if mask_self:
            scores = np.where(np.eye(scores.shape[-1], dtype=bool), -np.inf, scores)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        added = added + shares @ v @ weights.output[:, h * k : (h + 1) * k].T
    return added


def feed(net, tokens):
    """A GELU net, gated or not."""
    inner = tokens @ net.inner.T + net.inner_bias
    k = net.outer.shape[1]
    hidden = gelu(inner[..., :k]) * inner[..., k:] if net.gated else gelu(inner)
    return hidden @ net.outer.T + net.outer_bias


def pass_block(block, tokens):
    """A whole block."""
    one = 1.0 if block.scale_attention is None else block.scale_attention
    two = 1.0 if block.scale_mlp is None else block.scale_mlp
    first = block.norm_attention
    if block.placement == "post":
        tokens = layer_norm(tokens + one * attend(block.attention, tokens), first)
        return layer_norm(tokens + two * feed(block.mlp, tokens), block.norm_mlp)
    seen = tokens if first is None else layer_norm(tokens, first)
    tokens = tokens + one * attend(block.attention, seen)
    return tokens + two * feed(block.mlp, layer_norm(tokens, block.norm_mlp))


def moments(tokens):
    """Mean, covariance, and covariance of the means of the sequences, of (T, N, d)."""
    flat = tokens.reshape(-1, tokens.shape[-1])
    between = np.cov(tokens.mean(axis=1).T, bias=True)
    return flat.mean(axis=0), np.cov(flat.T, bias=True), between
