"""Every object store: an object is whole or absent, one of many writers wins, and a listing shows what stands."""

from __future__ import annotations

import os
import threading

import pytest
from bucket_servers import SCHEMES, serve
from first_fast import first_fast

from ldptree.errors import ArtifactCorrupt
from storage.objects.folder import FolderObjects
from storage.objects.object_store import sizes_of

NAME = "curator/reports/r.bin"
KINDS = ("folder", "memory", "gs", "s3", "az")


@pytest.fixture(scope="module", params=first_fast(*KINDS, fast=KINDS[:3]))
def kind(request):
    """What the objects are in, and the server where they are in its bucket."""
    if request.param not in SCHEMES:
        yield request.param, None
        return
    with serve(request.param) as server:
        yield request.param, server


@pytest.fixture
def objects(kind, request, tmp_path):
    name, server = kind
    if name == "folder":
        return FolderObjects(tmp_path / "work")
    if server is not None:
        bucket = f"bucket-{abs(hash(request.node.name)):x}"
        server.make_bucket(bucket)
        return server.objects(bucket, tmp_path / "copies")
    pytest.importorskip("obstore")
    from obstore.store import MemoryStore

    from storage.objects.bucket import BucketObjects

    return BucketObjects(MemoryStore(), "memory://", tmp_path / "copies")


def at_once(n, act):
    """What `act(number)` returned in each of `n` threads that begin together."""
    gate, found = threading.Barrier(n), {}

    def run(number):
        gate.wait()
        found[number] = act(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[number] for number in range(n)]


def names(objects, folder="", *, deep=True):
    return [entry.name for entry in objects.entries(folder, deep=deep)]


def test_what_was_written_is_read_and_gone_when_deleted(objects):
    assert objects.size(NAME) is None
    with pytest.raises(FileNotFoundError):
        objects.get(NAME)
    objects.put(NAME, b"old")
    objects.put(NAME, b"newer")
    assert (objects.get(NAME), objects.size(NAME), objects.path(NAME).read_bytes()) == (b"newer", 5, b"newer")
    objects.delete(NAME)
    objects.delete(NAME)
    assert objects.size(NAME) is None


def test_of_many_objects_each_is_read_in_its_turn_and_the_first_that_fails_is_told(objects):
    written = {f"holders/many/{i:02d}": bytes([i]) * i for i in range(40)}
    for name, data in written.items():
        objects.put(name, data)
    assert objects.at_once(objects.get, list(written)) == list(written.values())
    assert objects.at_once(objects.get, []) == []
    assert sizes_of(objects, [*written, "curator/none/x"]) == {name: i for i, name in enumerate(written)}
    for missing in ("holders/many/31", "holders/many/07"):
        objects.delete(missing)
    with pytest.raises(FileNotFoundError, match="holders/many/07"):
        objects.at_once(objects.get, list(written))
    assert sizes_of(objects, ["holders/many/06", "holders/many/07"]) == {"holders/many/06": 6}


def test_a_bucket_is_asked_for_many_objects_at_the_same_time(tmp_path):
    """Each waits here until all are asked for."""
    pytest.importorskip("obstore")
    from storage.objects.bucket import AT_ONCE, BucketObjects

    gate = threading.Barrier(AT_ONCE, timeout=60)
    bucket = BucketObjects(None, "memory://", tmp_path)
    assert sorted(bucket.at_once(lambda _: gate.wait(), ["any"] * AT_ONCE)) == list(range(AT_ONCE))


def test_damage_of_a_copy_is_told_from_damage_of_the_object(objects):
    objects.put(NAME, b"as written")
    assert objects.whole_path(NAME, is_as_written).read_bytes() == b"as written"
    objects.path(NAME).write_bytes(b"as writtem")
    is_object_whole = objects.get(NAME) == b"as written"  # what was damaged was a copy
    found = objects.whole_path(NAME, is_as_written)
    assert (found is not None) == is_object_whole
    assert not is_object_whole or objects.path(NAME).read_bytes() == b"as written"
    objects.put(NAME, b"as nobody wrote it")
    assert objects.whole_path(NAME, is_as_written) is None
    objects.delete(NAME)
    with pytest.raises(FileNotFoundError):
        objects.whole_path(NAME, is_as_written)


def is_as_written(path):
    return path.read_bytes() == b"as written"


@pytest.mark.parametrize("verb", ["create", "draw"])
def test_of_many_who_write_once_one_wins_and_its_bytes_stand(objects, verb):
    write = {
        "create": lambda number: objects.create(NAME, bytes([number]) * 1000),
        "draw": lambda number: objects.draw(NAME, lambda draft: draft.write(bytes([number]) * 1000)),
    }[verb]
    won = at_once(8, write)
    assert won.count(True) == 1
    assert objects.get(NAME) == bytes([won.index(True)]) * 1000
    assert not write(9)
    assert objects.get(NAME) == bytes([won.index(True)]) * 1000
    assert names(objects) == [NAME]


def test_a_reader_sees_one_writers_bytes_never_a_mixture(objects):
    """Of many who replace an object while others read it."""
    size, seen = 200_000, []
    objects.put(NAME, bytes(size))

    def act(number):
        for _ in range(20):
            if number % 2:
                objects.put(NAME, bytes([number]) * size)
            else:
                seen.append(objects.get(NAME))

    at_once(6, act)
    assert {(len(found), len(set(found))) for found in seen} == {(size, 1)}


def test_a_listing_has_what_stands_by_name_and_how_large_it_is(objects):
    written = {"a/b": b"1", "a/b.c/d": b"22", "a/c/d/e": b"", "ab/f": b"4444", "curator/g": b"", "z": b"5"}
    for name, data in reversed(written.items()):
        objects.put(name, data)
    assert {entry.name: entry.size for entry in objects.entries("", deep=True)} == {
        name: len(data) for name, data in written.items()
    }
    assert names(objects) == sorted(written)
    assert names(objects, "a") == ["a/b", "a/b.c/d", "a/c/d/e"]
    assert names(objects, "a", deep=False) == ["a/b"]
    assert names(objects, "", deep=False) == ["z"]
    assert (objects.folders("a"), objects.folders("")) == (["a/b.c", "a/c"], ["a", "ab", "curator"])
    assert (names(objects, "nowhere"), objects.folders("nowhere")) == ([], [])


def test_a_listing_shows_nothing_that_is_being_written(objects):
    seen = []

    def write(draft):
        draft.write(b"half")
        seen.extend(names(objects))

    objects.draw(NAME, write)
    assert seen == []
    assert names(objects) == [NAME]


def test_a_failed_write_leaves_what_was_there(objects):
    objects.put("x", b"old")
    for write in (objects.put, objects.create):
        with pytest.raises(TypeError):
            write("x", None)

    def fail(draft):
        draft.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        objects.draw("y", fail)
    assert names(objects) == ["x"]
    assert objects.get("x") == b"old"


def test_of_changes_each_sees_the_one_before(objects):
    def add_one(old):
        return str(int(old or 0) + 1).encode()

    at_once(8, lambda _: [objects.change("counted/n", add_one) for _ in range(5)])
    assert objects.get("counted/n") == b"40"


def test_a_change_that_fails_changes_nothing(objects):
    objects.put(NAME, b"old")
    with pytest.raises(ZeroDivisionError):
        objects.change(NAME, lambda old: bytes(1 // 0))
    assert objects.get(NAME) == b"old"


def drafted(objects, **files):
    draft = objects.draft_folder("public/step")
    for name, content in files.items():
        (draft / name).write_text(content)
    return draft


PUBLISHED = {"a": "one", "b": "two", "c": "three"}


def test_of_many_who_publish_the_same_each_finds_it_whole(objects):
    drafts = [drafted(objects, **PUBLISHED) for _ in range(8)]
    assert names(objects) == []

    def publish(number):
        objects.publish(drafts[number], "public/step/key")
        return [objects.get(f"public/step/key/{name}").decode() for name in PUBLISHED]

    assert at_once(8, publish) == [list(PUBLISHED.values())] * 8
    assert names(objects) == [f"public/step/key/{name}" for name in PUBLISHED]
    assert not any(draft.exists() for draft in drafts)


def test_what_is_damaged_is_published_anew_and_what_is_whole_is_left(objects):
    objects.publish(drafted(objects, **PUBLISHED), "public/step/key")
    objects.put("public/step/key/b", b"as nobody wrote it")
    objects.delete("public/step/key/c")
    (whole, *_) = objects.entries("public/step/key")
    objects.publish(drafted(objects, **PUBLISHED), "public/step/key")
    assert next(objects.entries("public/step/key")) == whole
    assert [objects.get(name).decode() for name in names(objects)] == list(PUBLISHED.values())


def test_of_two_who_publish_the_same_at_once_neither_takes_a_file_of_the_other_away(objects, monkeypatch):
    bucket = pytest.importorskip("storage.objects.bucket").BucketObjects
    drafts = [drafted(objects, **PUBLISHED) for _ in range(2)]
    create, came_between = bucket.create, []

    def create_and_let_another_in(self, name, data):
        is_put = create(self, name, data)
        if name == "public/step/key/b" and not came_between:
            came_between.append(name)
            objects.publish(drafts[1], "public/step/key")
        return is_put

    monkeypatch.setattr(bucket, "create", create_and_let_another_in)
    objects.publish(drafts[0], "public/step/key")
    assert came_between in ([], ["public/step/key/b"])
    assert [objects.get(name).decode() for name in names(objects)] == list(PUBLISHED.values())


def test_a_file_for_libraries_has_what_stands_now_also_of_a_large_object(objects):
    for content in (bytes(range(256)) * 100_000, b"newer"):
        objects.put(NAME, content)
        path = objects.path(NAME)
        assert path.name == "r.bin"
        assert path.read_bytes() == content


def test_a_pipe_in_the_place_of_a_file_is_refused_and_waited_for_by_nobody(tmp_path):
    objects = FolderObjects(tmp_path / "work")
    objects.create(NAME, b"content")
    objects.path(NAME).unlink()
    os.mkfifo(objects.path(NAME))
    with pytest.raises(ArtifactCorrupt, match=r"r\.bin: no file\."):
        objects.get(NAME)
