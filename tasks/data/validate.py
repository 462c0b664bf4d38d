"""Check both zones against one suite of expectations.

Great Expectations checks public rows, with full results and a page of Data Docs in their zone. Of private rows one query
counts those that violate an expectation. Counts stay in the holders' zone; yes or no, where a count is zero or not, leaves it in
a simulation, or where the configuration releases it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ldptree.errors import DataError
from schemas.dataset import DatasetSpec
from schemas.expectations import Expectation, Suite
from schemas.manifest import Manifest
from storage import tables
from storage.ledger.released_checks import check_release, release_checks
from storage.store import Draft, Store
from tasks.data.violations import count_violations, expected_of, sum_counts, violations_of
from tasks.step import step

Check = dict[str, Any]
SHOWN_VALUES = 3


def check_public(paths: Sequence[Path], suite: Suite, docs: Path) -> list[Check]:
    """The outcome of each expectation on public rows, with what was found; Data Docs are written to `docs`."""
    import polars as pl

    frame = pl.read_parquet(list(paths)).to_pandas()
    askable = [e for e in suite.expectations if e.column is None or e.column in frame.columns]
    results = _validated(frame, [_as_gx(e) for e in askable], docs / "index.html")
    by_expectation: dict[int, Any] = {id(e): result for e, result in zip(askable, results, strict=True)}
    checks = []
    for expectation in suite.expectations:
        result = by_expectation.get(id(expectation))
        ok = result is not None and bool(result.success)
        if expectation.expectation == "columns":
            ok = ok and count_violations(paths, [expectation]) == [0]
        checks.append(_check(expectation, "public", ok, "" if ok else _detail(result)))
    return checks


def check_private(counts: Sequence[int], suite: Suite) -> list[Check]:
    """Yes or no for each expectation on private rows, from how many rows violate it."""
    return [
        _check(expectation, "private", count == 0, "")
        for expectation, count in zip(suite.expectations, counts, strict=True)
    ]


@step("validate", version="4", home="holders", says="the outcome of every expectation")
def validate(
    draft: Draft,
    *,
    public: Manifest,
    private: Manifest,
    suite: Manifest | None,
    dataset: DatasetSpec,
    columns: Sequence[Sequence[str]],
    release: int | None,
    counts: Sequence[Manifest],
) -> Mapping[str, Any]:
    """Write the outcomes ("checks", the curator's: `checks.json`, `suite.json`), Data Docs ("docs") and what private rows
    violate ("counts", the holders': `violations.json`).

    `release`: how many answers about private rows may ever leave their holders; 0: none does, and what private rows violate
    stops no run, as that would tell; None: all do (a simulation). `counts`: what `count` counted in all private rows. Raises
    BudgetError where more would leave.
    """
    store = draft.store
    expected = expected_of(store, suite, dataset, columns)
    is_released = release is None or release > 0
    if release:
        release_checks(store.objects, answers_of(store, private, expected), release)
    violated = violations_of(sum_counts(store, counts), expected.expectations)
    public_files = tables.typed_parts(store.files(public))
    checks = [
        *check_public(public_files, expected, draft.folder("docs", "public")),
        *(check_private(violated, expected) if is_released else ()),
    ]
    folder = draft.folder("checks", "curator")
    (folder / "checks.json").write_text(json.dumps(checks, indent=1, ensure_ascii=False), encoding="utf-8")
    (folder / "suite.json").write_text(expected.to_json(), encoding="utf-8")
    violations = [
        {"expectation": e.words, "violations": n}
        for e, n in zip(expected.expectations, violated, strict=True)
    ]
    (draft.folder("counts") / "violations.json").write_text(
        json.dumps(violations, indent=1, ensure_ascii=False), encoding="utf-8"
    )
    return {"met": sum(check["ok"] for check in checks), "expected": len(checks), "says": _say_met(checks)}


def _say_met(checks: Sequence[Check]) -> str:
    """Return how many checks each kind of rows met, where that is known."""
    met = [
        (zone, [check["ok"] for check in checks if check["zone"] == zone]) for zone in ("public", "private")
    ]
    first, *more = [f"{sum(oks)} of {len(oks)} {{}}by {zone} rows" for zone, oks in met if oks]
    return ", ".join([first.format("checks met "), *(kind.format("") for kind in more)])


def answers_of(store: Store, private: Manifest, expected: Suite) -> list[str]:
    """A name for each answer about these private rows, under the holders' key."""
    keyed = store.hasher("holders")
    return [
        keyed.of_value([private.digest, expectation.model_dump(mode="json")])[:40]
        for expectation in expected.expectations
    ]


def foresee_release(
    store: Store,
    *,
    private: Manifest,
    suite: Manifest | None,
    dataset: DatasetSpec,
    columns: Sequence[Sequence[str]],
    release: int | None,
    **_: Any,
) -> None:
    """Raises BudgetError where `validate`, called with the same, would. Writes nothing."""
    if release:
        expected = expected_of(store, suite, dataset, columns)
        check_release(store.objects, answers_of(store, private, expected), release)


def check_passed(
    failed: Sequence[Mapping[str, Any]], page: Path | None = None, faults: Path | None = None
) -> None:
    """Raise DataError with the name of every expectation that failed. `page` has the details, and `faults` lists
    private rows that cannot be read.
    """
    if not failed:
        return
    names = "\n  ".join(f"not in all {check['zone']} rows: {check['name']}" for check in failed)
    where = "" if page is None else f"report  {page}\n"
    is_private = any(check["zone"] == "private" for check in failed)
    more = (
        f' Private rows that cannot be read are listed below {faults}; with on_bad_rows = "quarantine" they only report '
        '"outside".'
        if is_private and faults is not None
        else ""
    )
    raise DataError(
        f"validation failed, nothing was learned:\n  {names}\n{where}Correct the data, or the expectation (see dataset.expect)."
        f"{more}"
    )


def failures(store: Store, checks: Manifest) -> list[Check]:
    """The expectations that failed and stop a run."""
    content: list[Check] = json.loads(store.file(checks, "checks.json").read_text(encoding="utf-8"))
    return [check for check in content if not check["ok"] and check["severity"] == "stop"]


def _check(expectation: Expectation, zone: str, ok: bool, detail: str) -> Check:
    return {
        "name": expectation.words,
        "zone": zone,
        "ok": ok,
        "severity": expectation.severity,
        "detail": detail if zone == "public" else "",
    }


def _as_gx(expectation: Expectation) -> Any:
    from great_expectations import expectations as gx

    severity = "critical" if expectation.severity == "stop" else "warning"
    match expectation.expectation:
        case "columns":
            names = [name for name, _ in expectation.types or ()]
            return gx.ExpectTableColumnsToMatchOrderedList(column_list=names, severity=severity)
        case "rows":
            return gx.ExpectTableRowCountToBeBetween(min_value=expectation.at_least, severity=severity)
        case "read" | "known":
            return gx.ExpectColumnValuesToNotBeNull(column=expectation.column, severity=severity)
        case "between":
            return gx.ExpectColumnValuesToBeBetween(
                column=expectation.column,
                min_value=expectation.low,
                max_value=expectation.high,
                severity=severity,
            )
        case "one_of":
            return gx.ExpectColumnValuesToBeInSet(
                column=expectation.column, value_set=list(expectation.values or ()), severity=severity
            )


def _detail(result: Any) -> str:
    """Describe what was found in public rows."""
    if result is None:
        return "the column is not there"
    content = result.result
    if "observed_value" in content and "unexpected_count" not in content:
        return f"found {content['observed_value']}"
    if not content.get("element_count"):
        return "its values cannot be compared with that"
    values = list(dict.fromkeys(str(v) for v in content.get("partial_unexpected_list", [])))[:SHOWN_VALUES]
    rows = f"{content.get('unexpected_count', 0):,} of {content.get('element_count', 0):,} rows"
    return f"{rows}: {', '.join(values)}" if values else rows


def _validated(frame: Any, asked: Sequence[Any], page: Path) -> list[Any]:
    """Return Great Expectations' results in their order, and write them as a page of Data Docs."""
    with _quiet():
        import great_expectations as gx

        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = {"globally": False}
        batch = (
            context.data_sources.add_pandas("public rows")
            .add_dataframe_asset("rows")
            .add_batch_definition_whole_dataframe("all")
            .get_batch({"dataframe": frame})
        )
        for number, expectation in enumerate(asked):
            expectation.meta = {"number": number}
        suite = gx.ExpectationSuite(name="public rows", expectations=list(asked))
        outcome: Any = batch.validate(suite, result_format="COMPLETE")
        _draw_docs(outcome, page)
    by_number = {result.expectation_config.meta["number"]: result for result in outcome.results}
    return [by_number[number] for number in range(len(asked))]


_REMOTE = re.compile(
    r"""<script[^>]*\bsrc=["']https?://[^>]*>\s*</script>|<(?:link|img)[^>]*\b(?:href|src)=["']https?://[^>]*>"""
    r"""|<footer\b.*?</footer>| href="\.\./[^"]*\"""",  # a newsletter and an invitation; pages of a site that this one has not
    re.IGNORECASE | re.DOTALL,
)
STYLE = (
    "<style>body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.3rem .6rem;text-align:left}"
    "img,nav svg{max-height:2rem}</style></head>"
)


def _draw_docs(outcome: Any, path: Path) -> None:
    """Write the page of Data Docs, which opens offline: without the style and scripts that it would load from other hosts."""
    from great_expectations.render.renderer import ValidationResultsPageRenderer
    from great_expectations.render.view import DefaultJinjaPageView

    page = DefaultJinjaPageView().render(ValidationResultsPageRenderer().render(outcome))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_REMOTE.sub("", page).replace("</head>", STYLE, 1), encoding="utf-8")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Nothing asked of the network, nothing on the terminal."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    os.environ["TQDM_DISABLE"] = "1"
    logging.getLogger("great_expectations").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
