"""The store: an artifact is whole or absent, damage is noticed, and the holders' names for things tell nothing."""

from __future__ import annotations

import os
import stat
import threading

import pytest

from ldptree.errors import ArtifactCorrupt, ConfigError
from schemas.manifest import Record
from storage.store import Store


def place_of(store, *, home="curator", step="scale", inputs=None, **parameters):
    return store.place(home, step, "1", inputs=inputs or {}, parameters=parameters)


def make(store, place, files=None, *, part="out", zone=None) -> Record:
    with store.draft(place) as draft:
        for name, content in (files or {"a.txt": "one", "sub/b.txt": "two"}).items():
            path = draft.folder(part, zone) / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)
        return draft.finish({"n": 1}, 0.5)


def record_path(store, place):
    return store.objects.path(store.record_name(place))


def everything(store):
    return sorted(p.relative_to(store.root).as_posix() for p in store.root.rglob("*") if p.is_file())


def test_what_was_made_is_found_again_by_its_key_alone(store):
    place = place_of(store, inputs={"rows": "abc"}, depth=3)
    assert store.find(place) is None
    record = make(store, place)
    assert Store(store.root).find(place_of(store, inputs={"rows": "abc"}, depth=3)) == record
    assert store.file(record["out"], "sub/b.txt").read_text() == "two"
    with pytest.raises(KeyError):
        store.file(record["out"], "c.txt")


@pytest.mark.parametrize(
    "other",
    [
        {"step": "prune"},
        {"inputs": {"rows": "abd"}},
        {"inputs": {"lines": "abc"}},
        {"depth": 4},
        {"depth": 3, "more": None},
    ],
)
def test_another_step_input_or_parameter_is_another_key(store, other):
    make(store, place_of(store, inputs={"rows": "abc"}, depth=3))
    assert store.find(place_of(store, **({"inputs": {"rows": "abc"}, "depth": 3} | other))) is None


def test_another_version_of_the_step_is_another_key(store):
    one, two = (store.place("curator", "scale", v, inputs={}, parameters={}) for v in ("1", "2"))
    make(store, one)
    assert store.find(two) is None


def test_a_step_that_fails_leaves_nothing(store):
    place = place_of(store)

    def fail_halfway():
        with store.draft(place) as draft:
            (draft.folder("out") / "half.txt").write_text("half")
            (draft.folder("more", "public") / "half.txt").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_halfway()
    assert store.find(place) is None
    assert everything(store) == []


def test_a_step_that_fails_while_it_publishes_leaves_no_record(store, monkeypatch):
    place = place_of(store)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.objects, "create", full)
    with pytest.raises(OSError, match="No space"):
        make(store, place)
    monkeypatch.undo()
    assert store.find(place) is None
    record = make(store, place)  # a later run goes on from there
    assert store.find(place) == record


@pytest.mark.parametrize("zone", ["curator", "holders"])
@pytest.mark.parametrize("damage", ["flip", "shorten", "delete", "replace by a folder"])
def test_a_damaged_artifact_is_noticed_and_can_be_made_again(store, zone, damage):
    place, bystander = place_of(store, home=zone), place_of(store, home=zone, other=1)
    record, other = make(store, place), make(store, bystander)
    path = store.file(record["out"], "a.txt")
    match damage:
        case "flip":
            path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])
        case "shorten":
            path.write_bytes(path.read_bytes()[:-1])
        case "delete":
            path.unlink()
        case _:
            path.unlink()
            path.mkdir()
    assert store.find(place) is None
    assert store.condition(record["out"]) == ("missing" if damage == "delete" else "damaged")
    assert store.find(bystander) == other
    assert make(store, place) == record
    assert store.find(place) == record


def test_a_damaged_record_counts_as_none(store):
    place = place_of(store)
    record = make(store, place)
    for content in (b"", b"{", b'{"home": "nowhere"}', b"\xff\xfe"):
        record_path(store, place).write_bytes(content)
        assert store.find(place) is None
    assert make(store, place) == record


def test_a_flipped_value_in_a_record_is_noticed(store):
    place = place_of(store)
    record = make(store, place)
    path = record_path(store, place)
    content = path.read_text()
    path.write_text(content.replace('"n": 1', '"n": 7'))
    assert path.read_text() != content
    assert store.find(place) is None
    with pytest.raises(ArtifactCorrupt, match=f"{path.name}: damaged"):
        store.whole_record(store.record_name(place))
    assert make(store, place) == record


def test_a_record_of_a_later_ldptree_is_neither_read_nor_made_anew(store):
    place = place_of(store)
    make(store, place)
    path = record_path(store, place)
    path.write_text('{"format": {"name": "record", "version": 2, "digest": ""}, "more": 1}')
    for read in (lambda: store.find(place), lambda: [*store.records()]):
        with pytest.raises(ArtifactCorrupt, match="written by a later ldptree"):
            read()


def test_two_writers_agree_on_one_artifact(store):
    place, gate, records = place_of(store), threading.Barrier(6), []

    def write(number):
        mine = Store(store.root)
        with mine.draft(place) as draft:
            (draft.folder("out") / "a.txt").write_text("the same")
            gate.wait()
            records.append(draft.finish({"writer": number}, 0.0))

    threads = [threading.Thread(target=write, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({record["out"].model_dump_json() for record in records}) == 1
    assert store.find(place)["out"] == records[0]["out"]
    assert not [name for name in everything(store) if ".aside" in name]


def test_the_later_of_two_writers_takes_what_stands_where_they_differ(store):
    """A step whose bytes differ from time to time: the second run gets the first one's artifact and record."""
    place = place_of(store)
    with store.draft(place) as slow:
        (slow.folder("out") / "a.txt").write_text("second")
        first = make(store, place, {"a.txt": "first"})
        assert slow.finish({}, 0.0) == first
    assert store.file(first["out"], "a.txt").read_text() == "first"
    assert store.find(place) == first


@pytest.fixture(params=["folder", "bucket"])
def opened(request, tmp_path):
    """Opens a work folder, as each of two machines does."""
    if request.param == "folder":
        return lambda _: Store(tmp_path / "work")
    pytest.importorskip("obstore")
    from obstore.store import MemoryStore

    from storage.objects.bucket import BucketObjects

    bucket = MemoryStore()

    def open_bucket(machine):
        found = Store.__new__(Store)
        found.objects = BucketObjects(bucket, "memory://bucket", tmp_path / machine)
        found.root = found.objects.root
        return found

    return open_bucket


def let_in(objects, call, act, *, at):
    """`act` before this call of these objects."""
    calls, unchanged = [], getattr(objects, call)

    def let_another_in(*args):
        calls.append(args)
        if len(calls) == at:
            act()
        return unchanged(*args)

    setattr(objects, call, let_another_in)
    return calls


@pytest.mark.parametrize("at", [1, 2, 3])
def test_of_two_who_write_other_bytes_at_once_neither_takes_the_others_away(opened, at):
    """Another machine's run comes between while this one is at its first file, its second, its record."""
    slow, fast = opened("slow"), opened("fast")
    place, found = place_of(slow), []
    calls = let_in(slow.objects, "create", lambda: found.append(make(fast, place, {"a.txt": "fast"})), at=at)
    found.append(make(slow, place, {"a.txt": "slow", "b.txt": "slow"}))
    if at > len(calls):
        pytest.skip("a folder gets its name at once")
    assert found[0] == found[1] == slow.find(place) == fast.find(place)
    assert slow.file(found[0]["out"], "a.txt").read_text() == "fast"


def test_of_two_who_write_over_a_damaged_record_the_first_ones_stands(opened):
    slow, fast = opened("slow"), opened("fast")
    place, found = place_of(slow), []
    make(slow, place, {"a.txt": "once"})
    slow.objects.put(slow.record_name(place), b"damaged")
    let_in(slow.objects, "change", lambda: found.append(make(fast, place, {"a.txt": "fast"})), at=1)
    assert make(slow, place, {"a.txt": "slow"}) == found[0] == fast.find(place)
    assert fast.file(found[0]["out"], "a.txt").read_text() == "fast"


def test_keys_and_digests_of_the_holders_differ_between_work_folders_and_the_curators_do_not(tmp_path):
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    for zone, is_equal in (("holders", False), ("public", True), ("curator", True), ("simulation", False)):
        a, b = make(one, place_of(one, home=zone)), make(two, place_of(two, home=zone))
        assert (a.key == b.key) == is_equal, zone
        assert (a["out"].digest == b["out"].digest) == is_equal, zone
        assert all(
            (x.digest == y.digest) == is_equal for x, y in zip(a["out"].files, b["out"].files, strict=True)
        )


def test_a_part_in_another_zone_has_that_zones_digests(store):
    place = place_of(store, home="holders")
    with store.draft(place) as draft:
        (draft.folder("public", "public") / "a").write_text("x")
        (draft.folder("private") / "a").write_text("x")
        record = draft.finish({}, 0.0)
    assert record["public"].path.startswith("public/")
    assert record["public"].files[0].digest == store.hasher("public").of_bytes(b"x")
    assert record["private"].files[0].digest != record["public"].files[0].digest


def test_the_holders_secret_is_readable_by_its_owner_only(store):
    store.hasher("holders")
    assert stat.S_IMODE((store.root / "holders" / "secret").stat().st_mode) == 0o600


def test_the_curators_side_never_makes_the_holders_zone(store):
    make(store, place_of(store))
    store.find(place_of(store))
    assert not (store.root / "holders").exists()


def test_a_manifest_says_what_made_it_and_how_many_rows_it_has(store):
    place = place_of(store, inputs={"rows": "abc"}, depth=3)
    with store.draft(place) as draft:
        for name, rows in (("b", 3), ("a", 4)):
            (draft.folder("out") / name).write_text(name)
            draft.count("out", name, rows)
        manifest = draft.finish({}, 0.0)["out"]
    assert (manifest.rows, [e.name for e in manifest.files]) == (7, ["a", "b"])
    assert (manifest.made_by.step, manifest.made_by.version) == ("scale", "1")
    assert (manifest.made_by.parameters, manifest.made_by.inputs) == ({"depth": 3}, {"rows": "abc"})
    first, second = manifest.one_by_one()
    assert (first.files, first.digest, second.rows) == (manifest.files[:1], manifest.files[0].digest, 3)


def test_a_work_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ConfigError, match="that is a file") as fault:
            Store(path)
        assert fault.value.exit_code == 2


def test_a_file_system_that_takes_no_folders_is_refused():
    with pytest.raises(ConfigError, match="cannot be written"):
        Store("/proc/ldptree-work")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(tmp_path):
    for mode in (0o500, 0o000):
        folder = tmp_path / str(mode)
        folder.mkdir(mode=mode)
        with pytest.raises(ConfigError, match="cannot be written"):
            Store(folder)
        folder.chmod(0o700)


@pytest.mark.parametrize("error", [30, 13, 28])
def test_a_work_folder_that_cannot_be_written_is_refused_with_the_reason(tmp_path, monkeypatch, error):
    def refuse(*_, **__):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr("pathlib.Path.touch", refuse)
    with pytest.raises(ConfigError, match=os.strerror(error)):
        Store(tmp_path / "work")
