"""What treatments have cost, where an experiment says how much they may."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from streamer.metrics.compared_metrics import ComparedRatio
from streamer.query.experiment_metrics import JudgedMetric
from streamer.settings.experiments import Experiment
from streamer.stats.experiments.loss import ALPHA, Loss, loss_of
from streamer.stats.experiments.readout import Comparison


class ArmLoss(NamedTuple):
    """The loss of a treatment, in what ``noun`` names, and how much may be lost."""

    metric: JudgedMetric
    arm: str
    loss: Loss
    most: float
    noun: str
    treatments: int

    @property
    def is_too_much(self) -> bool:
        """Whether it is more than may be lost, and no accident."""
        return self.loss.value > self.most and self.loss.p_value * self.treatments <= ALPHA

    @property
    def words(self) -> str:
        """How much it is, with its range."""
        lost, low, high = self.loss.value, self.loss.low, self.loss.high
        if lost < 0.5:
            return f"No {self.noun} are lost (range: {_ends(low, high)}); {self._bound}"
        return f"About {lost:,.0f} {self.noun} are lost (range: {_ends(low, high)}); {self._bound}"

    @property
    def _bound(self) -> str:
        return f"{self.most:,.0f} may be."


def _ends(low: float, high: float) -> str:
    return f"{low:,.0f} to {high:,.0f}"


def losses_of(
    experiment: Experiment,
    metrics: Sequence[JudgedMetric],
    ratios: Mapping[str, ComparedRatio],
) -> Iterator[ArmLoss]:
    """That of each treatment, by the metric per user that counts what is bounded."""
    bound = experiment.loss_bound
    if bound is None:
        return
    for metric in metrics:
        ratio = ratios[metric.name]
        if ratio.noun != bound[1] or ratio.below is not None or metric.direction != "higher":
            continue
        for comparison in metric.found.comparisons:
            if (found := _of(experiment, metric, comparison)) is not None:
                count = len(metric.found.comparisons)
                yield ArmLoss(metric, comparison.arm, found, *bound, count)
        return


def _of(experiment: Experiment, metric: JudgedMetric, comparison: Comparison) -> Loss | None:
    who = comparison.converters
    control = next(arm for arm in metric.found.arms if arm.name == experiment.control)
    if who is None or control.value is None or not who.control:
        return None
    shares = experiment.shares[comparison.arm], experiment.shares[experiment.control]
    each = control.value * control.users / who.control
    return loss_of(who, shares[0] / sum(shares), each)
