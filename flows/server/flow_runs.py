"""What Prefect keeps of runs whose folder is gone: `ldptree gc` deletes it, through Prefect's API, and where the database is this
work folder's own, what the API leaves.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.naming import WORK_FOLDER
from flows.server import prefect_database, standing
from flows.server.process import Server, environment
from flows.server.watch import watched
from flows.work_folder.garbage import newest_runs, size_on_disk
from flows.work_folder.provenance import in_use
from ldptree.errors import LdptreeError
from storage.store import Store

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun

FLOWS = ["train", "train in rounds"]
BEGINS_WITHIN = timedelta(hours=1)
"""A run is known to Prefect a little before it holds its work folder."""
AT_ONCE = 200
"""How many the API gives at once."""


def collect_flow_runs(work: Path, *, keep: int, dry_run: bool) -> str | None:
    """Delete what Prefect keeps of this work folder's runs, but of the newest `keep`. Says what went; None where Prefect has
    nothing. Raises ConfigError, LdptreeError.
    """
    store = Store(work)
    home = Path(environment(store.root)["PREFECT_HOME"]).absolute()
    database = prefect_database.of(home)
    if "PREFECT_API_URL" not in os.environ and not (database and database.exists()):
        return None
    with in_use(store.root, alone=True):
        before = size_on_disk(home)
        again = f"ldptree gc --work {work}"
        server = Server(store.root, again=again)
        is_own = home.is_relative_to(store.root) and (
            server.temporary or standing.find(home, again) == server.url
        )
        try:
            server.wait()
            with watched(server):
                gone, kept = _delete(store, keep, is_own=is_own, dry_run=dry_run)
        finally:
            server.stop()
        if is_own and not dry_run:
            _delete_results(home)
            if server.temporary and database is not None:
                prefect_database.tidy(database, kept)
            elif database is not None:
                prefect_database.forget_events(database, gone)
    if dry_run:
        return f"Prefect: {len(gone)} flow runs would go"
    return f"Prefect: {len(gone)} flow runs gone, {max(0, before - size_on_disk(home)) / 1e6:.1f} MB"


def _delete(store: Store, keep: int, *, is_own: bool, dry_run: bool) -> tuple[list[str], list[str]]:
    """The ids of the flow runs that went, and of those that stay. Raises LdptreeError."""
    import httpx
    from prefect.client.orchestration import get_client
    from prefect.exceptions import PrefectException

    names = {*newest_runs(store, keep)}
    try:
        with get_client(sync_client=True) as client:
            ours = [run for run in _flow_runs(client) if is_own or _is_of(run, store.root)]
            doomed = [run for run in ours if run.name not in names and _is_over(run)]
            for run in [] if dry_run else doomed:
                _delete_one(client, run)
    except (httpx.HTTPError, PrefectException) as fault:
        raise LdptreeError(
            f"Prefect did not delete what it keeps of runs that are gone ({type(fault).__name__}). Artifacts are collected; "
            "give the same command again for the rest."
        ) from None
    gone = {str(run.id) for run in doomed}
    return [*gone], [*({str(run.id) for run in ours} - gone)]


def _flow_runs(client: SyncPrefectClient) -> Iterator[FlowRun]:
    from prefect.client.schemas.filters import FlowFilter, FlowFilterName
    from prefect.client.schemas.sorting import FlowRunSort

    only: Any = FlowFilter(name=FlowFilterName(any_=FLOWS))
    offset = 0
    while found := client.read_flow_runs(
        flow_filter=only, sort=FlowRunSort.ID_DESC, limit=AT_ONCE, offset=offset
    ):
        yield from found
        offset += len(found)


def _is_of(run: FlowRun, root: Path) -> bool:
    """Whether a run on a server that other projects use is this work folder's: it says so itself."""
    return run.labels.get(WORK_FOLDER) == str(root.resolve())


def _is_over(run: FlowRun) -> bool:
    """Whether a run ended, or was killed: while `gc` has the work folder no run goes on in it."""
    if run.state is None or run.state.is_final():
        return run.state is not None
    began = run.start_time
    return run.state.is_running() and began is not None and datetime.now(UTC) - began > BEGINS_WITHIN


def _delete_one(client: SyncPrefectClient, run: FlowRun) -> None:
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
    from prefect.exceptions import ObjectNotFound

    its: Any = FlowRunFilter(id=FlowRunFilterId(any_=[run.id]))
    with contextlib.suppress(ObjectNotFound):  # another `gc` was first
        for artifact in client.read_artifacts(flow_run_filter=its):
            client.delete_artifact(artifact.id)
        client.delete_flow_run(run.id)


def _delete_results(home: Path) -> None:
    """Prefect's copies of records: the store has the records, and a run that finds one gives Prefect a new copy."""
    for path in (home / "storage").glob("ldptree-*"):
        path.unlink(missing_ok=True)
