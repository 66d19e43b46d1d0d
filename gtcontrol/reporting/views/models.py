"""The model behind a result, for its report, where it is not the flow of a Gaussian."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["AFTER", "BEFORE", "CORRECTED", "LAYER", "MIXTURE", "RESIDUAL", "Model"]


@dataclass(frozen=True)
class Model:
    """What moves the tokens.

    Attributes
    ----------
    introduction : str
        One or two sentences before the equations.
    equations : tuple of str
    explanation : str
        What the equations mean for the result.
    terms : tuple of (str, str)
        Symbols and their meanings, besides those of attention (all of them for one layer).
    """

    introduction: str
    equations: tuple[str, ...]
    explanation: str
    terms: tuple[tuple[str, str], ...]


#: A layer with an activation beside the affine part.
LAYER = Model(
    introduction=(
        "A Transformer moves tokens, vectors x of dimension d. Beside linear layers and softmax "
        "attention there is a feed-forward layer f whose activation is not linear, so that a "
        "cloud that begins as a Gaussian does not stay one:"
    ),
    equations=(
        "x′ = A x + b + f(x) + V · (softmax average over the cloud)",
        "f(x) = outer · act(inner x + bias)",
    ),
    explanation=(
        "The Gaussian flow N(m, S) beside it is statistically linearised: at each time f is "
        "replaced by the affine map that is nearest to it in mean square under N(m, S), with "
        "u = inner x + bias: f(x) ≈ E f + J (x − m), E f = outer E act(u), "
        "J = outer diag(E act′(u)) inner. Then m′ = (A + V) m + V S B m + b + E f and "
        "S′ = M S + S Mᵀ with M = A + J + V S B. These rates are exact while the law is "
        "Gaussian. Linearised at the mean, E f is f(m) and J the derivative of f there."
    ),
    terms=(
        ("inner, bias", "weights (k, d) and bias (k) from the token to the k hidden units"),
        ("act", "the activation, applied to each hidden unit"),
        ("outer", "weights (d, k) from the hidden units back to the token"),
        ("E, J", "the average over N(m, S), and the matrix of the nearest affine map"),
    ),
)

#: A mixture of Gaussians under attention.
MIXTURE = Model(
    introduction=(
        "A Transformer moves tokens, vectors x of dimension d. A cloud that begins as a mixture "
        "of Gaussians N(mₖ, Sₖ) with weights pₖ moves at first by"
    ),
    equations=(
        "x′ = A x + b + V Σₖ πₖ(x) (mₖ + Sₖ B x)",
        "πₖ(x) = pₖ exp(⟨B x, mₖ⟩ + ½ ⟨B x, Sₖ B x⟩), divided by the sum of these over k",
    ),
    explanation=(
        "With two components or more this is not affine in x: the components are coupled, and "
        "none stays Gaussian. Moved by the best affine maps, a component has mₖ′ = Eₖ v and "
        "Sₖ′ = Jₖ Sₖ + Sₖ Jₖᵀ, with v the velocity above in the field of all moved components, "
        "Jₖ = Eₖ Dv, and Eₖ the average over N(mₖ, Sₖ). Moved by itself it has πₖ = 1."
    ),
    terms=(
        ("mₖ, Sₖ, pₖ", "mean, covariance and weight of component k"),
        ("πₖ(x)", "share of its attention that the token x gives to component k"),
    ),
)

#: Exported layers, with the parameters of the plan at the beginning of their step.
RESIDUAL = Model(
    introduction=(
        "A plan moves tokens, vectors x of dimension d, in continuous depth. Exported, it is n "
        "residual layers of softmax attention of step h = T/n; each moves tokens, and the "
        "Gaussian law N(m, S) of very many of them, by"
    ),
    equations=(
        "x⁺ = x + h (A x + b + V · (softmax average over the tokens))",
        "m⁺ = m + h m′, with m′ = (A + V) m + V S (B m + β) + b",
        "S⁺ = (I + h M) S (I + h M)ᵀ, with M = A + V S B",
        "B = W_Kᵀ W_Q / √k, β = W_Kᵀ b_Q / √k, V = W_O W_V for each head; heads add up",
    ),
    explanation=(
        "The law of these layers is exact for each of them, and differs from the flow of the "
        "plan, S′ = M S + S Mᵀ, by O(h): so few layers miss the target by themselves. Finitely "
        "many tokens differ from this law by chance."
    ),
    terms=(
        ("h, n, T", "step, number of layers, horizon"),
        ("β", "score bias: token x looks at token y with weight proportional to exp⟨B x + β, y⟩"),
        ("W, b_Q, k", "weights and bias of queries, keys, values, outputs; width of a head"),
    ),
)

#: The same, with A and b such that the law after every layer is that of the plan.
CORRECTED = replace(
    RESIDUAL,
    equations=(
        *RESIDUAL.equations,
        "corrected: A = (Φ − I) / h − V S B, b = (m⁺ − m) / h − A m − V (m + S (B m + β))",
    ),
    explanation=(
        f"{RESIDUAL.explanation} In the flow from the start a token at x at time t is at "
        "m⁺ + Φ (x − m) at time t + h, with Φ′ = M Φ along it. Corrected layers keep V, B and β "
        "and have the A and b above, so that each is this map on the law of its tokens, for "
        "every n."
    ),
    terms=(*RESIDUAL.terms, ("Φ", "the matrix by which deviations from the mean move in a step")),
)

_STEP = (
    "a(x) = c + K u",
    "K = Σ_h V_h S B_h,   c = b_O + Σ_h [V_h (m + S β_h) + W_O,h b_V,h]",
    "Cov(x + a) = S_x + K C + (K C)ᵀ + K S Kᵀ,   C = Cov(u, x)",
)

_FINITE = (
    "For N tokens softmax is averaged over finitely many keys: each head's K shrinks, tokens see "
    "themselves with weight w, and noise is added, which heads and all tokens of a sequence have "
    "in common in part; the mean of a sequence is followed through the layers as well. Chain (from "
    "the moments of the input) and step (from those before the layer) have all this; the mean "
    "field (N infinite) has not. LayerNorm is integrated exactly for Gaussian tokens, activations "
    "by Hermite series."
)

_WEIGHTS = (
    ("x, S_x", "a token of the residual stream, and the covariance of these"),
    ("a(x), f(x)", "what attention and the feed-forward net add"),
    ("B_h, β_h", "scores of head h: W_Kᵀ W_Q/√k and W_Kᵀ b_Q/√k, with k rows in W_Q"),
    ("V_h", "values of head h: W_O,h W_V; b_V,h and b_O are the biases"),
    ("LN", "LayerNorm"),
)


def _block(steps: str, tokens: str, seen: tuple[str, str]) -> Model:
    return Model(
        introduction=(
            "One layer is a step, not a flow: attention and a feed-forward net add to each token "
            f"x. {tokens} Its keys are taken as Gaussian, u ~ N(m, S):"
        ),
        equations=(steps, *_STEP),
        explanation=_FINITE,
        terms=(*_WEIGHTS, seen),
    )


#: A layer whose norms come before attention and feed-forward net ...
BEFORE = _block(
    "x ← x + a(x),   x ← x + f(LN(x))",
    "Attention sees u = LN(x).",
    ("u, m, S", "what attention sees, LN(x), and its mean and covariance"),
)

#: ... and after them.
AFTER = _block(
    "x ← LN(x + a(x)),   x ← LN(x + f(x))",
    "Attention sees the token itself, u = x.",
    ("u, m, S", "what attention sees, here x itself, and its mean and covariance"),
)
