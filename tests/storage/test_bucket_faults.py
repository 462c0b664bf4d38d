"""A bucket behind a bad network: requests are lost, and answers to what was done. Nobody wins twice, and no charge is lost."""

from __future__ import annotations

import itertools
import threading

import pytest

pytest.importorskip("obstore")
pytest.importorskip("moto")

from bucket_servers import SCHEMES, serve
from s3_server import FAULTS, by_chance, proxy

from ldptree.errors import BudgetError
from ldptree.protocol.ledger import Charge, RowRange
from storage.ledger.accounts import Account
from storage.ledger.connections import VARIABLE
from storage.ledger.database import Database
from storage.ledger.lost_parts import check_state
from storage.store import Store

pytestmark = pytest.mark.slow
WRITERS = 6
ROWS = RowRange(source="rows.csv", start=0, stop=10)


@pytest.fixture(scope="module", params=SCHEMES)
def server(request):
    with serve(request.param) as server:
        yield server


@pytest.fixture
def bucket(server, request):
    name = f"bucket-{abs(hash(request.node.name)):x}"
    server.make_bucket(name)
    return name


def over(objects):
    """The store of these objects."""
    store = Store.__new__(Store)
    store.objects, store.root = objects, objects.root
    return store


def at_once(n, act):
    gate = threading.Barrier(n)
    threads = [threading.Thread(target=lambda number=i: (gate.wait(), act(number))) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("often", ["once", "always"])
def test_a_put_that_was_done_is_known_to_be_whatever_the_answer(
    server, bucket, tmp_path, monkeypatch, fault, often
):
    """And one that was not done says so."""
    left = itertools.repeat(fault) if often == "always" else iter([fault])

    def of_puts(method, _path):
        return next(left, "") if method == "PUT" else ""

    monkeypatch.setattr("storage.objects.bucket.PAUSE", 0.0)
    with proxy(server.port, of_puts) as between:
        objects = server.objects(bucket, tmp_path, port=between.server_port)
        is_done = fault in ("lost", "late", "hanging") or often == "once"
        if is_done:
            assert objects.create("a/b", b"mine")
            objects.put("a/c", b"mine") if often == "once" else None
        else:
            of_conflict = "another write of it|too many requests"
            said = of_conflict if fault == "conflict" else "does not answer as it should"
            with pytest.raises(OSError, match=said):
                objects.create("a/b", b"mine")
    plain = server.objects(bucket, tmp_path)
    assert (plain.size("a/b") == 4) == is_done
    assert not is_done or not plain.create("a/b", b"another's")


@pytest.mark.parametrize("verb", ["create", "put"])
def test_an_object_that_was_written_too_often_is_written_later(server, bucket, tmp_path, monkeypatch, verb):
    """Google takes one write of an object a second, and obstore is less patient."""
    left = iter([(429, "SlowDown")] * 10)
    monkeypatch.setattr("storage.objects.bucket.PAUSE", 0.0)

    def refusal(method, *_):
        return next(left, None) if method == "PUT" else None

    with proxy(server.port, refusal=refusal) as between:
        objects = server.objects(bucket, tmp_path, port=between.server_port)
        getattr(objects, verb)("a/b", b"mine")
        assert objects.get("a/b") == b"mine"
    assert list(left) == []


@pytest.mark.parametrize("often", ["once", "always"])
def test_an_answer_that_stops_half_way_is_never_taken_for_the_object(server, bucket, tmp_path, often):
    content = bytes(range(256)) * 1_000
    server.objects(bucket, tmp_path / "there").put("a/b", content)
    left = itertools.repeat("cut") if often == "always" else iter(["cut"])

    def of_reads(method, _path):
        return next(left, "") if method == "GET" else ""

    with proxy(server.port, of_reads) as between:
        objects = server.objects(bucket, tmp_path / "here", port=between.server_port)
        for read in (objects.get, lambda name: objects.path(name).read_bytes()):
            try:
                assert read("a/b") == content
            except OSError:
                assert often == "always"
        assert often == "once" or not [path for path in (tmp_path / "here").rglob("*") if path.is_file()]


@pytest.mark.parametrize(("pause", "is_in_time"), [(0.01, True), (2.5, False)])
def test_a_slow_answer_is_waited_for_or_given_up_and_never_half_taken(
    server, bucket, tmp_path, pause, is_in_time
):
    """A client here waits two seconds for an answer."""
    content = bytes(range(256)) * 1_000
    server.objects(bucket, tmp_path / "there").put("a/b", content)

    def of_reads(method, _path):
        return "slow" if method == "GET" else ""

    with proxy(server.port, of_reads, pause=pause) as between:
        objects = server.objects(bucket, tmp_path / "here", retries=0, port=between.server_port)
        for read in (objects.get, lambda name: objects.path(name).read_bytes()):
            if is_in_time:
                assert read("a/b") == content
            else:
                with pytest.raises(OSError, match="does not answer in time"):
                    read("a/b")
        kept = [path for path in (tmp_path / "here").rglob("*") if path.is_file()]
        assert len(kept) == is_in_time


@pytest.mark.parametrize("seed", range(4))
def test_of_many_who_write_once_at_most_one_wins_behind_a_bad_network(server, bucket, tmp_path, seed):
    found = {}
    with proxy(server.port, by_chance(seed, 0.4)) as between:

        def write(number):
            objects = server.objects(bucket, tmp_path, retries=1, port=between.server_port)
            for name in range(5):
                try:
                    found[number, name] = objects.create(f"drawn/{name}", f"{number}".encode())
                except OSError:
                    found[number, name] = None

        at_once(WRITERS, write)
    plain = server.objects(bucket, tmp_path)
    for name in range(5):
        said = [found[number, name] for number in range(WRITERS)]
        assert said.count(True) <= 1
        if True in said:
            assert plain.get(f"drawn/{name}") == str(said.index(True)).encode()
        if False in said:
            assert plain.size(f"drawn/{name}") is not None


@pytest.mark.parametrize("seed", range(4))
def test_no_change_is_lost_behind_a_bad_network(server, bucket, tmp_path, seed):
    """Each adds its number to a set: what was said to be done stands at the end."""
    done = []
    with proxy(server.port, by_chance(seed, 0.3)) as between:

        def add(number):
            objects = server.objects(bucket, tmp_path, retries=1, port=between.server_port)
            for item in range(3):
                mine = f"{number}-{item}"
                try:
                    objects.change(
                        "set", lambda old, m=mine: " ".join({*(old or b"").decode().split(), m}).encode()
                    )
                except OSError:
                    continue
                done.append(mine)

        at_once(WRITERS, add)
    assert done
    assert {*done} <= {*server.objects(bucket, tmp_path).get("set").decode().split()}


@pytest.mark.parametrize("seed", range(4))
def test_machines_that_charge_at_once_behind_a_bad_network_never_overspend(
    server, bucket, tmp_path, monkeypatch, seed
):
    """Their database is not behind it; what tells of its last transaction is."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "holders.db"))
    paid = []
    with proxy(server.port, by_chance(seed, 0.2)) as between:

        def charge(number):
            store = over(server.objects(bucket, tmp_path, retries=1, port=between.server_port))
            asked = Charge(question=f"question {number}", epsilon=1.0, who=ROWS, about="a question")
            try:
                Account(store, None).charge([asked], cap=3.0)
            except (OSError, BudgetError):
                return
            paid.append(asked.question)

        at_once(WRITERS, charge)
    store = over(server.objects(bucket, tmp_path))
    ledger = Account(store, None).read()
    assert ledger.spent_by(ROWS) <= 3.0
    assert {*paid} <= {entry.question for entry in ledger.entries}
    Account(store, None).keep_asked("place", "digest")
    check_state(store)
    database = Database(store.objects)
    with database.reading() as kept:
        assert {*database.outside().values()} == {database.check(kept, {})}
