"""What a classifier's score says on a page, whichever kind of page that is."""

from __future__ import annotations

from dataclasses import dataclass

from tasks.page.model_facts import ModelScore


@dataclass(frozen=True, kw_only=True)
class ScoreFacts(ModelScore):
    """A classifier's figures. The chief one is the accuracy.

    metrics   "accuracy" (required, 0 to 1), and where known "balanced_accuracy", "auc", "log_loss" (nats).
    confusion counts [true class][said class], in the order of the run's classes; empty where unknown.
    """

    confusion: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError where there is no accuracy between 0 and 1."""
        if not 0 <= self.metrics.get("accuracy", -1) <= 1:
            raise ValueError(f"the score {self.key!r} needs an accuracy between 0 and 1, got {self.metrics}")

    @property
    def accuracy(self) -> float:
        """Share of the held-back rows answered correctly, 0 to 1."""
        return self.metrics["accuracy"]

    @property
    def figure(self) -> float:
        """The accuracy."""
        return self.accuracy
