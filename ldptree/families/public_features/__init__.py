"""Estimation with public features: one report a holder, with the whole epsilon (ours)."""

from ldptree.families.public_features.curator import PublicFeatures
from ldptree.families.public_features.model import Effect, PublicFeatureModel
from ldptree.families.public_features.questions import QUESTIONS, FeatureBins, LabelBins, ResidualQuestion

__all__ = [
    "QUESTIONS",
    "Effect",
    "FeatureBins",
    "LabelBins",
    "PublicFeatureModel",
    "PublicFeatures",
    "ResidualQuestion",
]
