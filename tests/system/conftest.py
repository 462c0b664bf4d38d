"""One real Prefect server for all whole runs of the session, and the runs that several promises are told of."""

from __future__ import annotations

import os
from contextlib import ExitStack
from unittest import mock

import pytest
from whole_runs import Api, many_files


@pytest.fixture(scope="session")
def api(tmp_path_factory):
    """The session's Prefect server: a process of its own, on a free port, with a database in a temporary folder."""
    from flows.server import Server

    home = tmp_path_factory.mktemp("prefect")
    with mock.patch.dict(os.environ, {"PREFECT_HOME": str(home)}):
        os.environ.pop("PREFECT_API_URL", None)
        server = Server(home)
        server.wait()
    yield Api(server.url, home)
    server.stop()


@pytest.fixture(scope="module", autouse=True)
def connected(api):
    """What runs in this process, or is started by it, talks to the session's server; afterwards nothing does."""
    import logging

    import prefect.context
    from prefect.settings import PREFECT_API_URL, PREFECT_HOME, temporary_settings

    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, api.environment))
        updates = {PREFECT_API_URL: api.url, PREFECT_HOME: api.home}
        stack.enter_context(temporary_settings(updates=updates))
        # Threads that Prefect started earlier have no context of ours.
        stack.enter_context(prefect.context._temporary_global_settings_context(prefect.context.get_settings_context()))
        yield api
        logging.disable(logging.NOTSET)


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder of CSV files, one of public rows and one for each shard of private rows."""
    return many_files(tmp_path_factory.mktemp("many"))
