"""What every scikit-learn estimator of noisy reports says of itself, private estimators and their rivals alike."""

from __future__ import annotations

from typing import Any


class Noisy:
    """Stands first among an estimator's bases, before the mixin of its kind and `BaseEstimator`."""

    random_state: Any

    def __sklearn_tags__(self) -> Any:
        """Reports are noisy: scores are poor on few rows, and never the same twice without a seed."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        for kind in (tags.classifier_tags, tags.regressor_tags):
            if kind is not None:
                kind.poor_score = True
        tags.non_deterministic = self.random_state is None
        return tags
