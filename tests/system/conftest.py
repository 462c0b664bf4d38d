"""One real Prefect server for all whole runs of the session, and a run that several promises are told of."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from unittest import mock

import pytest
from whole_runs import MENDED, Api, Release, many_files, rides_toml, run


@pytest.fixture(scope="session")
def api(tmp_path_factory):
    """The session's Prefect server: a process of its own, on a free port, with a database in a temporary folder."""
    from flows.server.process import Server

    home = tmp_path_factory.mktemp("prefect")
    with mock.patch.dict(os.environ, {"PREFECT_HOME": str(home)}):
        os.environ.pop("PREFECT_API_URL", None)
        server = Server(home)
        server.wait()
    empty = tmp_path_factory.mktemp("empty") / "prefect.db"
    with contextlib.closing(sqlite3.connect(home / "prefect.db")) as found:
        found.execute("VACUUM INTO ?", [str(empty)])
    yield Api(server.url, home, empty)
    server.stop()


@pytest.fixture(scope="module", autouse=True)
def connected(api):
    """What a module's tests run, here or as a process, talks to the session's server."""
    with api.connected():
        yield api


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder of CSV files, one of public rows and one for each shard of private rows."""
    return many_files(tmp_path_factory.mktemp("many"))


@pytest.fixture(scope="session")
def release(api, files, tmp_path_factory):
    """A seeded run over many files, by one worker, in which nothing is held back. Only to be read."""
    return _released(api, files, tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="session")
def mended_release(api, files, tmp_path_factory):
    """The same of a public model that is mended."""
    return _released(api, files, tmp_path_factory.mktemp("mended"), **MENDED)


def _released(api, files, folder, **tables):
    from schemas.config import load

    seeded = {"simulation": {"noise_seed": 11}}
    config = load(rides_toml(folder / "rides.toml", str(files / "*.csv"), **seeded, **tables))
    with api.connected():
        return Release(config, folder / "work", run(config, folder / "work", workers=1))
