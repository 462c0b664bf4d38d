"""The finding of a run in rounds: what was learned from what is shown and what was answered, and what private features brought.

Each sentence is true of the run; one that compares two models rests on the paired interval of their squared errors.
"""

from __future__ import annotations

from tasks.page import numbers as n
from tasks.page.number_facts import NumberScore
from tasks.page.rounds_facts import RoundsFacts
from tasks.page.rounds_words import ESTIMATORS, LOW_HIGH
from tasks.page.run_finding import LOUD, Tile, against_reference, tags, told_apart, verdict
from tasks.page.run_words import rows_of

RIVALS = {
    "public_tree": "a tree",
    "public_forest": "a forest",
}


def headline(facts: RoundsFacts) -> str:
    """The finding in one sentence with its figures."""
    target = facts.target.replace("_", " ")
    asked = f"{rows_of(facts, facts.n_private)} at {n.epsilon(facts.epsilon)}"
    if facts.is_helped and facts.effects:
        best = facts.effects[0]
        more = "higher" if best.swing >= 0 else "lower"
        return (
            f"From {asked}: {target} is about {facts.measure.at_least(abs(best.swing))} {more} "
            f"{LOW_HIGH[best.shape]} of the private {best.feature}."
        )
    if facts.ours is not None:
        return f"{asked} give a model of {target} with a mean squared error of {_mse(facts.ours)}{_of_features(facts)}."
    return f"From {asked}, a model now predicts {target}{_of_features(facts)}."


def _of_features(facts: RoundsFacts) -> str:
    """Whether private features have a part in the model."""
    if facts.mask_release != "all" or facts.estimator != "public_features":
        return ""
    if not facts.protected:
        return ""
    return f", to which private features add {'too little to count' if facts.effects else 'nothing'}"


def lead(facts: RoundsFacts) -> list[str]:
    """The paragraph under the finding: what the model says of itself, how good it is, what is against it."""
    low, high = (facts.measure.value(end) for end in facts.predicts)
    said = [facts.learned] if facts.learned else []
    if facts.effects and not facts.is_helped:
        said.append(
            "What the reports say of private features, too little to count as help, is in the model all the same."
        )
    said.append(f"Over what the holders show, answers run from {low} to {high}.")
    if facts.ours is None:
        said.append(
            "How good they are, this run does not know: no private row was held back, so there is no score here."
        )
        return said
    return said + _comparisons(facts, facts.ours)


def _comparisons(facts: RoundsFacts, ours: NumberScore) -> list[str]:
    r2 = ours.metrics.get("r2")
    said = [
        f"On {rows_of(facts, facts.n_scored)} held back the mean squared error is {_mse(ours)}"
        + (f", R² {n.decimal(r2, 2)}." if r2 is not None else ".")
    ]
    constant = facts.baseline("constant")
    if constant is not None:
        said.append(_against_constant(facts, constant))
    rivals = [score for key in RIVALS if (score := facts.baseline(key))]
    best = min(rivals, key=lambda score: score.figure, default=None)
    if best is not None:
        said.append(_against_public(facts, ours, best))
    limit = facts.baseline("non_private")
    if limit is not None and limit.figure < ours.figure:
        said.append(f"A tree that reads the private {facts.nouns} themselves gets {_two(limit, ours)[0]}.")
    return said


def _against_constant(facts: RoundsFacts, constant: NumberScore) -> str:
    return f"Always predicting the mean of the public labels has {_mse(constant)}{against_reference(facts, constant)}"


def _against_public(facts: RoundsFacts, ours: NumberScore, best: NumberScore) -> str:
    """What labelled public rows alone, which show all of their features, do."""
    figure, what = _two(best, ours)[0], RIVALS[best.key]
    rows = f"{n.count(facts.n_public)} public {facts.nouns}, all features and labels known"
    found = verdict(facts, best)
    if found == "better":
        return f"The best model from the {rows}, {what}, gets {figure}."
    if found == "worse":
        return (
            f"But {what} from the {rows}, does better, with no report: {figure}. Their labels are not used by this estimator, "
            "which takes only ranges from public rows."
        )
    return f"The best model from the {rows}, {what}, gets {figure}: too near to say on these test rows which is better."


def tiles(facts: RoundsFacts) -> list[Tile]:
    """The strip of figures under the finding."""
    private = [feature for feature in facts.features if feature.declared != "public"]
    rounds = n.plural(len(facts.asked), "round", "rounds")
    each = (
        "one question each at most"
        if facts.most_rounds == 1
        else f"{n.count(facts.most_rounds)} questions each"
    )
    return [
        Tile(figure=n.count(facts.n_private), label=f"holders of private {rows_of(facts)}"),
        Tile(
            figure=f"{n.count(len(private))} of {n.count(len(facts.features))}",
            label="features that somebody protects; the label is always private",
        ),
        Tile(figure=n.epsilon(facts.epsilon), label="at most, for each holder, over all rounds"),
        Tile(figure=rounds, label=f"{ESTIMATORS.get(facts.estimator, facts.estimator)}: {each}"),
    ]


def _mse(score: NumberScore) -> str:
    return n.fixed(score.figure, n.digits_of(score.figure))


def _two(one: NumberScore, other: NumberScore) -> tuple[str, str]:
    return told_apart(
        one.figure, other.figure, n.fixed, first=n.digits_of(min(one.figure, other.figure) or 1.0), more=6
    )


__all__ = ["LOUD", "headline", "lead", "tags", "tiles"]
