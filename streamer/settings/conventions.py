"""Conventions by which some metrics of slates can be shown besides their default."""

from __future__ import annotations

CONVENTIONS = {
    "precision_ratio": ("shown",),
    "map_ratio": ("jurity", "primer"),
    "mar_ratio": ("jurity", "primer"),
    "ndcg_ratio": ("jurity", "exponential"),
    "kendall_tau": ("tau_b",),
}
"""Metric → the others, in the order in which they are laid out."""
