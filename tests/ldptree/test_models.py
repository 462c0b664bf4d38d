"""What every kind of released model promises: it is its text, refuses every other, and SQL says what it says.

What only one kind promises is in the files beside this one.
"""

from __future__ import annotations

import json
import math
import pickle
import re
from dataclasses import fields, replace
from functools import cache
from hashlib import sha256

import numpy as np
import pytest
from corrected_examples import KINDS, random_corrected
from example_models import random_model, random_regression, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st
from notebook_html import read_shown
from protocol_texts import signed

from ldptree.encoding import Encoding, NumericFeature
from ldptree.errors import ConfigError, DataError
from ldptree.estimators import HistOfTreeRegressor
from ldptree.families.public_features import PublicFeatureModel
from ldptree.models import MODELS, Model, read_model
from ldptree.models.public_view import PublicViewModel
from ldptree.models.surface import Surface
from ldptree.partition.tree import Partition


def shown_model(estimator: str) -> PublicViewModel:
    """A small model of public features, on two columns of [0, 1]."""
    encoding = Encoding(tuple(NumericFeature(name, 0.0, 1.0, fill=0.5) for name in ("x0", "x1")))
    inner = PublicFeatureModel(
        columns=("x0", "x1"),
        low=(0.0, 0.0),
        high=(1.0, 1.0),
        private=(1,),
        label_low=-9.0,
        label_high=9.0,
        is_binary=False,
        surface=Surface((0,), np.zeros(1), 1.0, np.array([2.0])),
        effects=(),
        epsilon=1.0,
        n_holders=50,
        says="nothing was asked",
    )
    if estimator == "histoftree":
        X = np.random.default_rng(0).random((300, 2))
        fitted = HistOfTreeRegressor(8.0, private_features=[1], t=2, p=1, random_state=0).fit(X, X[:, 0])
        inner = fitted.model_
    return PublicViewModel(
        encoding=encoding,
        target="rings",
        private=("x1",),
        estimator=estimator,
        inner=inner,
        epsilon=1.0,
        n_private=50,
        questions=("0" * 64,),
    )


MADE = {
    "two classes": lambda: random_model(3, max_depth=3),
    "two classes, no public rows": lambda: random_model(3, max_depth=3, lam=math.inf, prune="none"),
    "three classes": lambda: random_model(3, max_depth=3, classes=(1, 2, 3), lam="auto", prune="variance"),
    "four classes": lambda: random_model(3, max_depth=3, classes=("a", "b", "c", "d"), lam=0.5),
    "a number": lambda: random_regression(1),
    "a number, falling back": lambda: random_regression(2, fit={"lam": 0.5, "prune": "fallback"}),
    "a number, as LPDT": lambda: random_regression(2, fit={"lam": 0.0, "prune": "none", "rule": "ratio"}),
    "a number, no public rows": lambda: random_regression(
        1, n_public=1, fit={"lam": math.inf, "prune": "none"}
    ),
    **{
        f"corrected {kind}": lambda kind=kind: random_corrected(kind, 6, n_trees=3, depth=3) for kind in KINDS
    },
    "histoftree": lambda: shown_model("histoftree"),
    "public_features": lambda: shown_model("public_features"),
}
OF_TREES = [name for name in MADE if name not in ("histoftree", "public_features")]
FEW = ("two classes", "a number", "corrected number", "histoftree", "public_features")


@cache
def made(name: str) -> Model:
    return MADE[name]()


def assert_same_answers(one: Model, other: Model, raw: np.ndarray) -> None:
    pairs = zip(one.predict_columns(raw), other.predict_columns(raw), strict=True)
    for (name, values), (again, others) in pairs:
        assert name == again
        np.testing.assert_array_equal(values, others)


# what a notebook and a terminal show


@pytest.mark.parametrize("name", MADE)
def test_a_notebook_is_shown_a_picture_of_every_model_and_a_terminal_a_line(name: str) -> None:
    model = made(name)
    for one in [model, model.inner] if name in ("histoftree", "public_features") else [model]:
        line = str(one)
        assert line.startswith(f"{type(one).__name__} of ")
        assert repr(one) == f"<{line}>"
        shown = read_shown(one._repr_html_())
        assert line in shown
        drawn = shown.replace(line, "")
        assert any(column in drawn for column in (*model.columns_needed, *model.encoding.names))


def test_a_model_of_odd_names_and_of_many_columns_shows_those_that_change_its_answer() -> None:
    inner = replace(
        shown_model("public_features").inner,
        columns=tuple(f"<b>{j}</b>" for j in range(9)),
        low=(0.0,) * 8 + (5.0,),
        high=(1.0,) * 8 + (5.0,),
        private=(),
        surface=Surface((0, 3, 8), np.zeros(3), 1.0, np.array([1.0, -2.0, 7.0])),
    )
    shown = read_shown(inner._repr_html_())
    assert shown.index("<b>3</b>") < shown.index("<b>0</b>")
    assert "<b>1</b>" not in shown
    flat = replace(inner, surface=Surface.constant(1.0))
    assert "lies between 1 and 1" in read_shown(flat._repr_html_())


# its text


def test_every_kind_that_is_read_is_tried_here() -> None:
    assert {made(name).kind for name in MADE} == set(MODELS)


@pytest.mark.parametrize("name", MADE)
def test_a_model_is_its_text(name: str) -> None:
    model = made(name)
    text = model.to_json()
    again = read_model(text)
    assert type(again) is type(model)
    assert (again.to_json(), again.digest) == (text, model.digest)
    assert (
        sha256(signed(json.loads(text)).encode()).hexdigest() != model.digest
    )  # that of the content, not of all
    assert json.loads(signed(json.loads(text)))["digest"] == model.digest
    assert_same_answers(again, model, rows_of(model))
    assert_same_answers(pickle.loads(pickle.dumps(model)), model, rows_of(model))
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))


@pytest.mark.parametrize("name", FEW)
def test_a_damaged_or_foreign_text_is_refused_with_its_fault(name: str) -> None:
    text = made(name).to_json()
    data = json.loads(text)
    for fault, wrong in [
        ("JSON", ""),
        ("JSON", "[1"),
        ("JSON", text[:-20]),
        ("JSON", b"\xff\xfe\x00"),
        ("JSON", "[" * 100_000),
        *(
            (fault, re.sub(r'"epsilon":[^,}]*', f'"epsilon":{odd}', text))
            for fault, odd in (
                ("NaN", "NaN"),
                ("Infinity", "Infinity"),
                (None, "1e999"),
                (None, "-1e999"),
                (None, "[" * 9**5 + "]" * 9**5),
            )
        ),
        ("kind", "[]"),
        ("kind", "{}"),
        ("kind", json.dumps({"version": 1})),
        ("absent", json.dumps({"version": 1, "kind": data["kind"]})),
        ("version", json.dumps(data | {"version": 2})),
        ("surprise", json.dumps(data | {"surprise": 1})),
        ("digest", json.dumps(data | {"epsilon": 0.5})),
        ("digest", json.dumps(data | {"digest": "0" * 64})),
        ('the key "epsilon" stands twice', text.replace('"epsilon":', '"epsilon":1,"epsilon":')),
    ]:
        with pytest.raises(DataError, match=fault):
            read_model(wrong)


@pytest.mark.parametrize("name", MADE)
def test_every_field_has_to_be_there_and_of_its_type_though_the_digest_fits(name: str) -> None:
    data = json.loads(made(name).to_json())
    for outer, part in ((None, data), ("inner", data.get("inner", {}))):
        for key in set(part) - {"digest"}:
            without = {k: v for k, v in part.items() if k != key}
            # models that were written before it was known say nothing of it
            absent = [] if key in ("hidden", "common_sd", "chance_alike", "stumps") else [without]
            for changed in (*absent, part | {key: {"x": 1}}):
                with pytest.raises(DataError):
                    read_model(
                        signed(changed if outer is None else data | {outer: json.loads(signed(changed))})
                    )


ODD = st.sampled_from(
    [None, True, -1, 0, 2**31, 10**400, 0.5, -0.5, 1e300, "", "inf", "-inf", "nan", "1", [], [[]], [0], {}, {"x": 1}]
)  # fmt: skip


@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data())
@pytest.mark.parametrize("name", FEW)
def test_what_is_forged_is_refused_or_a_model_of_that_very_text(name: str, data: st.DataObject) -> None:
    """One value anywhere in a text is another one, and the digest fits: no other error, and no text with two meanings."""
    plain = json.loads(made(name).to_json())
    at, key = plain, data.draw(st.sampled_from(sorted(set(plain) - {"digest"})))
    while isinstance(at[key], dict | list) and at[key] and data.draw(st.booleans()):
        at = at[key]
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
    at[key] = data.draw(ODD)
    text = signed(plain)
    try:
        found = read_model(text)
    except DataError:
        return
    again = read_model(found.to_json())
    assert again.digest == found.digest


def test_a_column_cannot_pass_a_model_off_as_another_kind() -> None:
    encoding = Encoding((NumericFeature('"kind":"ldptree regression model"', 0.0, 1.0, fill=0.0),))
    tree = Partition.of([0, -1, -1], [0.5, 0.0, 0.0], [1, -1, -1], [2, -1, -1])
    model = random_regression(1, encoding=encoding, partition=tree)
    assert read_model(model.to_json()).digest == model.digest
    name = '"\\"kind\\":\\"ldptree regression model\\""'
    with pytest.raises(DataError, match="digest"):  # changed, but still read as the classifier it is
        read_model(made("two classes").to_json().replace('"fare"', name))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("epsilon", -3),
        ("epsilon", 0.0),
        ("epsilon", math.nan),
        ("epsilon", 10**400),
        ("n_private", -3),
        ("n_private", 10**30),
        ("n_public", -1),
    ],
)
@pytest.mark.parametrize("name", FEW)
def test_what_no_model_can_rest_on_is_refused_though_the_digest_fits(
    name: str, field: str, value: float
) -> None:
    model = made(name)
    if field not in {one.name for one in fields(model)}:
        return
    with pytest.raises(DataError, match="NaN is no number" if value != value else f"{field} = "):
        read_model(signed(json.loads(model.to_json()) | {field: value}))
    with pytest.raises(DataError, match=f"{field} = "):
        replace(model, **{field: value})


@pytest.mark.parametrize("name", ["histoftree", "public_features"])
def test_what_stands_inside_a_model_is_checked_as_it_is(name: str) -> None:
    inner = made(name).inner
    for field, value in (("epsilon", 0.0), ("n_holders", -3)):
        with pytest.raises(DataError, match=f"{field} = "):
            replace(inner, **{field: value})
    if name == "histoftree":
        with pytest.raises(DataError, match="missing"):
            inner.predict(np.full((1, 2), np.nan))


# its answers


@pytest.mark.parametrize("name", MADE)
def test_a_model_says_the_chances_of_classes_or_that_its_label_is_a_number_of_many_rows_or_none(
    name: str,
) -> None:
    model = made(name)
    raw = rows_of(model)
    for rows in (raw, raw[:0]):
        assert {len(values) for _, values in model.predict_columns(rows)} == {len(rows)}
    if classes := getattr(model, "classes", ()):
        shares = model.predict_proba(raw.tolist())
        assert shares.shape == (len(raw), len(classes))
        assert shares.min() >= 0
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    else:
        with pytest.raises(DataError, match="the label is a number; ask for predict"):
            model.predict_proba(raw)


@pytest.mark.parametrize("name", ["two classes", "a number"])
def test_the_arrays_are_read_only(name: str) -> None:
    with pytest.raises(ValueError, match="read-only"):
        made(name).estimate[0] = 1.0


@pytest.mark.parametrize("name", OF_TREES)
def test_columns_that_are_not_needed_change_no_answer(name: str) -> None:
    model = made(name)
    raw = rows_of(model)
    assert set(model.columns_needed) <= set(model.encoding.columns)
    for j, column in enumerate(model.encoding.columns):
        changed = raw.copy()
        changed[:, j] = np.random.default_rng(1).permutation(changed[:, j])
        if column not in model.columns_needed:
            pairs = zip(model.predict_columns(changed), model.predict_columns(raw), strict=True)
            for (_, values), (_, before) in pairs:
                np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize("name", ["histoftree", "public_features"])
def test_what_is_no_tree_is_not_exported(name: str) -> None:
    for export in (made(name).to_sql, made(name).to_dot):
        with pytest.raises(ConfigError, match="not one tree"):
            export()
