"""Find the raw files of a run, or make them for a simulation. Their contents are not read here."""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ldptree.errors import ConfigError, DataError
from schemas.catalogue import DATA, sources
from schemas.dataset import DatasetSpec
from schemas.expectations import Suite
from schemas.manifest import FileEntry, MadeBy, Manifest
from schemas.named_files import A_FOLDER, BUCKETS, NO_SUCH_FILE, read_fault, shown_path
from storage.downloads import is_stated
from storage.objects.addresses import find_objects, local_file, unchanged_file
from storage.raw.raw_files import check_start, same_columns
from storage.sql import check_expression
from storage.store import Draft, Store
from tasks import progress
from tasks.data.ingest_plan import inspect_files
from tasks.step import step

PART_BYTES = 256 << 20
"""Raw files of together about so many bytes are read by one task; a larger Parquet is cut into pieces of so many."""


def check_named(spec: DatasetSpec) -> None:
    """Check what can be told of a data set before any of its rows is read.

    Raises DataError where a file that it names is not there, or its first bytes are no text; ConfigError where a rule is not
    an SQL expression over one row, or the edited suite is not one.
    """
    rule = spec.rule
    rules = {"public": rule.predicate, "where": spec.where}
    rules |= {f"derive.{name}": text for name, text in spec.derive.items()}
    for key, text in rules.items():
        if text is not None:
            check_expression(text, f"dataset.{key}")
    paths = locate([*spec.path, *([rule.path] if rule.path else [])])
    for path in paths if spec.encoding is None else ():
        check_start(path)
    if len(paths) > 1:
        same_columns(inspect_files(spec, paths, is_whole=False))
    if spec.path and all(path.startswith(DATA) for path in spec.path):
        check_files(spec.name)
    if spec.expect:
        read_suite(*locate([spec.expect]))


def locate(paths: Sequence[str]) -> list[Path]:
    """Return the files that paths and globs name, sorted within each glob. `data:...` is looked for in LDPTREE_DATA,
    and files in a bucket are copied.

    Raises DataError where there is none: what was looked for, where, and what to do.
    """
    return [path for _, path in _named(paths)]


def _named(paths: Sequence[str]) -> list[tuple[str, Path]]:
    """The files with their names, which are their paths or, in a bucket, their addresses. Raises as `locate`."""
    pairs: list[tuple[str, Path]] = []
    for path in paths:
        if path.startswith(BUCKETS):
            pairs += _in_bucket(path)
            continue
        text = path
        if path.startswith(DATA):
            home = os.environ.get("LDPTREE_DATA")
            if not home:
                raise DataError(
                    f"{path.removeprefix(DATA)}: needs the folder of data sets. Set LDPTREE_DATA to it "
                    "(`ldptree datasets show NAME` tells which files belong there)."
                )
            text = str(Path(home) / path.removeprefix(DATA))
        files = [Path(match).absolute() for match in _matches(text)]
        faults = {file: read_fault(file) for file in files}
        if not files or NO_SUCH_FILE in faults.values():
            raise DataError(_not_found(Path(text), from_catalogue=path.startswith(DATA)))
        for file, fault in faults.items():
            if fault is not None:
                remedy = (
                    f"Name a file, or a pattern such as {file.name}/*.csv"
                    if fault == A_FOLDER
                    else "Name another file"
                )
                raise DataError(f"{shown_path(file)}: {fault}. {remedy}.")
        pairs += [(str(file), file) for file in files]
    return pairs


def _in_bucket(pattern: str) -> list[tuple[str, Path]]:
    """The files in a bucket that a pattern names, by address. Raises DataError, ConfigError."""
    try:
        pairs = [(address, local_file(address)) for address in find_objects(pattern)]
    except OSError as fault:
        raise DataError(
            f"{pattern}: cannot be read ({fault.strerror}). Check the bucket's name, its credentials and the network."
        ) from None
    if not pairs:
        raise DataError(f"{pattern}: {NO_SUCH_FILE}. Nothing in this bucket fits it.")
    return pairs


def _matches(text: str) -> list[str]:
    """The paths that fit a pattern, sorted; of a path without one, the path."""
    is_pattern = glob.has_magic(text) and "\0" not in text
    return sorted(glob.glob(text)) if is_pattern else [text]  # noqa: PTH207 - absolute patterns


def files(store: Store, paths: Sequence[str]) -> Manifest:
    """The raw files as an artifact that stands outside of the store. Raises DataError."""
    hasher = store.hasher("holders")
    entries = []
    for name, path in _named(paths):
        try:
            entries.append(FileEntry(name=name, digest=hasher.of_file(unchanged_file(name))))
        except OSError as fault:
            raise DataError(f"{path}: cannot be read ({fault.strerror}).") from None
    return Manifest(
        zone="holders",
        path="",
        digest=hasher.of_value([entry.digest for entry in entries]),
        files=tuple(entries),
        made_by=MadeBy(step="source", version="1", parameters={}, inputs={}),
    )


def in_order(store: Store, raw: Manifest, names: Sequence[str]) -> Manifest:
    """Return the raw files in the order of these names, on which it depends who is asked in which file."""
    files = tuple(sorted(raw.files, key=lambda entry: names.index(entry.name)))
    if files == raw.files:
        return raw
    digest = store.hasher("holders").of_value([entry.digest for entry in files])
    return raw.model_copy(update={"files": files, "digest": digest})


def parts(store: Store, raw: Manifest, first: int, is_public: bool, pieces: Manifest) -> list[dict[str, Any]]:
    """Split the raw files into parts for one task each. A part has its files, the number of the first one, whether all
    are public, and the piece of a file that it is.

    `first`: the number of the first file of `raw`; `pieces`: those that `types` has cut large files into.
    """
    keyed = store.hasher("holders")
    every_piece, whole = pieces.one_by_one(), (None,)
    calls = []
    for group in groups([path.stat().st_size for path in store.files(raw)], PART_BYTES):
        files, number = raw.files[group.start : group.stop], first + group.start
        digest = keyed.of_value([entry.digest for entry in files])
        part = raw if files == raw.files else raw.model_copy(update={"files": files, "digest": digest})
        cut = [manifest for manifest in every_piece if manifest.files[0].name.startswith(f"{number:04d}-")]
        calls += [
            {"raw": part, "first": number, "is_public": is_public, "piece": piece} for piece in cut or whole
        ]
    return calls


def groups(sizes: Sequence[int], full: int) -> list[range]:
    """Group what follows each other, by its numbers, in parts of about a size."""
    starts, filled = [0], 0
    for number, size in enumerate(sizes):
        if filled and filled + size > full:
            starts.append(number)
            filled = 0
        filled += size
    return [range(start, stop) for start, stop in zip(starts, [*starts[1:], len(sizes)], strict=True)]


@step("source", version="1", home="holders", says="raw files")
def simulate(draft: Draft, *, rows: int, seed: int) -> Mapping[str, Any]:
    """Raw CSV of simulated trips, in the 13 columns of the Chicago challenge."""
    write_trips(draft.folder("raw") / "simulated-trips.csv", rows=rows, seed=seed)
    return {"n_rows": rows}


def write_trips(path: Path, *, rows: int, seed: int) -> None:
    """Write `rows` simulated trips as CSV, in bounded memory. Raises OSError."""
    import polars as pl

    from ldptree.simulate import trips

    done = 0
    with path.open("wb") as sink:
        for block in trips.blocks(rows, seed):
            frame = pl.DataFrame(block)
            frame.write_csv(sink, include_header=done == 0)
            done += frame.height
            progress.advance(done / rows)


def rows_to_make(spec: DatasetSpec) -> int:
    """Return the number of rows of a simulated data set. Raises ConfigError where it does not say."""
    if spec.rows is None:
        raise ConfigError("dataset.rows: missing. Say how many rows to simulate, or dataset.path.")
    return spec.rows


def public_files(store: Store, spec: DatasetSpec) -> Manifest | None:
    """The second file of a public rule that names one. Raises DataError."""
    check_apart(spec)
    return files(store, [spec.rule.path]) if spec.rule.path else None


def check_apart(spec: DatasetSpec) -> None:
    """Raises ConfigError where a file is public and private, DataError where one is not there."""
    if not spec.rule.path:
        return
    both = set(locate(spec.path)) & set(locate([spec.rule.path]))
    if both:
        raise ConfigError(
            f"dataset.public: {both.pop()}: is in dataset.path too. Its rows would be public and private."
        )


def suite_file(store: Store, spec: DatasetSpec) -> Manifest | None:
    """The edited suite of expectations that a data set names. Raises DataError."""
    return files(store, [spec.expect]) if spec.expect else None


def read_suite(path: Path) -> Suite:
    """The suite of expectations in an edited file that was located. Raises ConfigError, OSError."""
    return Suite.from_json(path.read_text(encoding="utf-8-sig", errors="replace"), str(path))


def _not_found(path: Path, *, from_catalogue: bool) -> str:
    names = _names_in(path.parent)
    near = difflib.get_close_matches(path.name, names, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    if not path.parent.is_dir():
        hint = f" There is no folder {shown_path(path.parent)} either."
    elif glob.has_magic(path.name):
        hint = f" Nothing in {path.parent} fits this pattern."
    if from_catalogue:
        hint += (
            " Set LDPTREE_DATA to the folder that has it; `ldptree datasets show NAME` says where it comes from, and "
            "`ldptree datasets fetch NAME` downloads what can be downloaded."
        )
    return f"{shown_path(path)}: {NO_SUCH_FILE}.{hint}"


def _names_in(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []


def check_files(name: str) -> None:
    """That the files of a data set of the catalogue are the ones that its entry states. Raises DataError."""
    source = sources().get(name)
    for file, stated in source.files.items() if source else ():
        (path,) = locate([DATA + file])
        if not is_stated(path, stated.sha256, is_gzipped=stated.gzipped):
            raise DataError(
                f"{file}: another file than the catalogue states (its sha256 differs). Bring the stated one "
                f"(`ldptree datasets show {name}`), or name the file itself: dataset.path = FILE of a run, [brought.NAME] with "
                "path = FILE of a suite."
            )
