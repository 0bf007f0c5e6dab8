"""The variance of random groups, against the sandwich estimator of statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm

from streamer.stats.random_groups import GroupSums, estimates


@pytest.mark.parametrize("occupied", [2, 5, 16])
def test_the_variance_is_the_cluster_robust_one(occupied: int) -> None:
    """x / y regressed on a constant with weights y: the constant is R, a group is a cluster."""
    random = np.random.default_rng(occupied)
    y = random.integers(1, 500, occupied)
    x = random.binomial(y, random.beta(2, 8, occupied))
    regression = sm.WLS(x / y, np.ones(occupied), weights=y).fit(
        cov_type="cluster", cov_kwds={"groups": np.arange(occupied)}
    )
    rest = [0] * (16 - occupied)
    found = estimates(np.array([[*x, *rest]], float), np.array([[*y, *rest]], float))
    assert found.occupied[0] == occupied
    assert found.value[0] == pytest.approx(regression.params[0], rel=1e-12)
    assert found.variance[0] == pytest.approx(regression.cov_params()[0, 0], rel=1e-9)
    sums = GroupSums((*x.tolist(), *rest), (*y.tolist(), *rest))
    assert sums.variance == pytest.approx(found.variance[0], rel=1e-12)


def test_rows_do_not_touch_each_other() -> None:
    random = np.random.default_rng(1)
    y = random.integers(0, 50, (20, 16)).astype(float)
    x = np.floor(y * random.random((20, 16)))
    together = estimates(x, y)
    for i in range(20):
        alone = estimates(x[i : i + 1], y[i : i + 1])
        assert alone.variance[0] == together.variance[i]
