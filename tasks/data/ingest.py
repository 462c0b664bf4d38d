"""Ingest: the types of all columns from public rows (`types`), then the rows of each part of the raw files (`tasks.data.read`),
then what all parts say together (`ingest`).

What is decided beforehand is in `tasks.data.ingest_plan`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ldptree.errors import DataError
from schemas.manifest import Manifest
from storage.holders.holder_names import type_of_names
from storage.raw import raw_files
from storage.sql import check_predicate, list_columns
from storage.store import Draft
from tasks.data import source
from tasks.data.ingest_plan import IngestPlan, RowRules, cut_files, inspect_files, plan_ingest
from tasks.data.read import READ_AS, FilesRead
from tasks.step import step


@step("types", version="6", home="holders", says="what each column is, from public rows")
def types(
    draft: Draft,
    *,
    raw: Manifest,
    public_raw: Manifest | None,
    rules: RowRules,
    numeric: bool | None = False,
) -> dict[str, Any]:
    """Tell what public rows decide of all raw files, and write where large Parquet files are cut ("pieces", a file
    each: `FILE-PIECE.json`). Every byte of a text is looked at.

    `numeric`: the label is a number; None: as public rows tell.
    """
    paths = draft.store.files(raw)
    public_paths = draft.store.files(public_raw) if public_raw else []
    files = inspect_files(rules.dataset, [*paths, *public_paths])
    raw_files.same_columns(files)
    folder = draft.folder("pieces")
    for index, pieces in cut_files(files, source.PART_BYTES).items():
        for piece in pieces:
            (folder / f"{index:04d}-{piece.number:06d}.json").write_text(piece.to_json())
    return describe_columns(plan_ingest(rules, files, len(paths), numeric=numeric))


def describe_columns(plan: IngestPlan) -> dict[str, Any]:
    """Return what is decided of the columns before the first row is written."""
    spec, kept, raw_types = plan.spec, plan.query.kept, plan.found_types
    columns = [column.name for column in kept]
    derived = {
        column: plan.query.types[column]
        for name, text in plan.query.derive.items()
        for column in check_predicate(text, plan.files[0].columns, f"dataset.derive.{name}")
    }
    names = {column.name: type_of_names(column.type) for column in kept}
    return {
        READ_AS: raw_types.types,
        "columns": [[column.name, column.type, column.storage] for column in kept],
        "types": {
            column: kind
            for column, kind in raw_types.types.items()
            if column in raw_types.left_out or column not in spec.drop
        },
        "derived_from": derived,
        "features": list(spec.features(columns, plan.rule_columns)),
        "rule_columns": list(plan.rule_columns),
        "label": "number" if plan.query.numeric else "class",
        "columns_left_out": raw_types.left_out,
        **({} if spec.holder_column is None else {"holder_type": names[spec.holder]}),
    }


@step("ingest", version="6", home="holders", says="what the typed rows of each zone are")
def ingest(
    draft: Draft, *, counts: Sequence[Manifest], rules: RowRules, typed: Mapping[str, Any]
) -> dict[str, Any]:
    """Write which raw file the private rows of each part came from ("sources": `sources.json`), and tell what all parts hold.

    `counts`: what `read` left of all parts, in their order; `typed`: what `types` told. Raises DataError where all files together
    are not enough to learn from.
    """
    read = FilesRead()
    for manifest in counts:
        read += FilesRead.from_json(draft.store.file(manifest, "counts.json").read_bytes())
    check_all_read(rules, typed, read)
    (draft.folder("sources") / "sources.json").write_text(json.dumps(read.sources))
    facts = {name: fact for name, fact in typed.items() if name != READ_AS}
    return facts | {"bad_public": read.bad, "left_out_public": read.left_out}


def check_all_read(rules: RowRules, typed: Mapping[str, Any], read: FilesRead) -> None:
    """Raise DataError where all files together are not enough to learn from, or have private rows that nobody asks."""
    spec, parts = rules.dataset, read.parts
    if not parts[True]:
        read_as = [f"{column} read as {typed[READ_AS][column]}" for column in typed["rule_columns"]]
        types_of_rule = f", with {', '.join(read_as)}" if read_as else ""
        if read.left_out:
            raise DataError(
                f"no public rows: dataset.where = {spec.where!r} leaves out every row that the rule {spec.public!r} makes public."
            )
        raise DataError(
            f"no public rows by the rule {spec.public!r}{types_of_rule}: the tree is grown on them. Check dataset.public."
        )
    if parts[False] and rules.all_public:
        raise DataError(
            f"private rows by the rule {spec.public!r}: in a collection every row is public, and people answer on their own "
            'devices. Take them out of dataset.path, or set dataset.public = "true".'
        )
    if not parts[False] and not rules.all_public:
        asked = "" if spec.where is None else f", or dataset.where = {spec.where!r} leaves out all others"
        raise DataError(
            f"no private rows: the rule {spec.public!r} makes every row public{asked}. Check dataset.public."
        )
    stated = read.labels - {None}
    if len(stated) < 2:
        has = (
            f"a single value in the public rows: {stated.pop()!r}" if stated else "no value in any public row"
        )
        raise DataError(
            f'column "{spec.target}" (the target) has {has}. Nothing can be learned from it: choose another dataset.target, or '
            "another dataset.public."
        )
    labels = sorted(str(label) for label in stated)
    if spec.classes and not {str(value) for value in spec.classes} & set(labels):
        raise DataError(
            f'dataset.classes: no public row has one of them in "{spec.target}", where there is {list_columns(labels)}.'
        )
    if not typed["features"]:
        raise DataError("no features are left besides the target, the rule's columns and what is dropped.")
    empty = [name for name in typed["features"] if read.present[name] == 0]
    if empty:
        raise DataError(
            f"every public value is missing in {list_columns(empty)}: nothing is known of its range. Add to dataset.drop."
        )
