"""Estimation with public features, by one report of each holder with the whole epsilon (ours)."""

from ldptree.families.public_features.family import PublicFeatures
from ldptree.families.public_features.questions import QUESTIONS, FeatureBins, LabelBins, ResidualQuestion
from ldptree.models.public_features import Effect, PublicFeatureModel

__all__ = [
    "QUESTIONS",
    "Effect",
    "FeatureBins",
    "LabelBins",
    "PublicFeatureModel",
    "PublicFeatures",
    "ResidualQuestion",
]
