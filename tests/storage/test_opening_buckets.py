"""What a bucket that cannot be used says, before anybody is asked; and two buckets, which two credentials open."""

from __future__ import annotations

import re
import socket
from datetime import timedelta
from pathlib import Path

import pytest

pytest.importorskip("obstore")
pytest.importorskip("moto")

from bucket_servers import SCHEMES, serve
from s3_server import bucket_objects, make_bucket, proxy, s3_server, variables

from ldptree.errors import ConfigError, DataError
from schemas.named_files import BUCKETS
from schemas.tables import BUCKET
from storage.objects.addresses import bucket_address, find_objects, local_file, open_objects
from tasks.data.source import locate

KEYS = {"holders-side": "of-holders", "curator-side": "of-curator"}
TWO = "holders=s3://holders-side/work,curator=s3://curator-side/work"


@pytest.fixture(scope="module")
def server():
    with s3_server() as port:
        for name in ("bucket", *KEYS):
            make_bucket(port, name)
        yield port


@pytest.fixture
def behind(monkeypatch, tmp_path):
    """The variables of somebody whose S3 is at a port."""

    def use(port):
        said = variables(port) | {"XDG_CACHE_HOME": str(tmp_path)}
        for name, value in said.items():
            monkeypatch.setenv(name, value)

    return use


def key_of(headers):
    return re.search(r"Credential=([^/]+)/", headers.get("Authorization", "Credential=/"))[1]


def refuse_other_keys(_, path, headers):
    """A bucket is opened by its own key only."""
    return None if KEYS[re.split(r"[/?]", path)[1]] == key_of(headers) else (403, "AccessDenied")


def test_two_addresses_are_one_that_a_path_may_have_lost_slashes_of():
    assert bucket_address(TWO) == bucket_address(TWO.replace("//", "/")) == TWO


@pytest.mark.parametrize("kind", BUCKETS)
def test_a_bucket_of_every_kind_is_known_on_the_command_line_and_in_a_configuration(kind):
    assert bucket_address(Path(f"{kind}bucket/team")) == f"{kind}bucket/team"
    assert re.search(BUCKET, f"{kind}bucket/team")


@pytest.mark.parametrize(
    "typed",
    [
        "S3://bucket/team",
        "https://bucket.s3.amazonaws.com/team",
        "s4://bucket",
        "s3://",
        "s3:bucket/team",
        "s3://bucket/one,two",
        "s3://bucket/team#1",
        "s3://bucket/team?x=1",
        "s3://bucket/te%61m",
        "s3://bucket:80/team",
        "s3://key@bucket/team",
        "s3://bucket/other/../team",
        "holders=s3://bucket:80/team,curator=s3://bucket/team",
        "holders=s3://bucket/team",
        "holders=here,curator=s3://bucket",
        "curator=s3://one,holders=s3://two",
    ],
)
@pytest.mark.parametrize("as_path", [False, True])
def test_what_was_meant_as_an_address_is_never_a_folder(tmp_path, monkeypatch, typed, as_path):
    """In a new folder nobody is known to have been asked."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"no address that is known\. Write s3://bucket/prefix") as refused:
        open_objects(Path(typed) if as_path else typed)
    assert refused.value.exit_code == 2
    assert ":/" not in str(refused.value).replace("://", "")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_a_colon_or_an_equals_sign_in_its_name_is_one(tmp_path):
    for name in ("team:1", "a=b", "here/holders=all"):
        assert open_objects(tmp_path / name).root == tmp_path / name
        assert bucket_address(name) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (403, "RequestTimeTooSkewed", "the clock of this machine is wrong"),
        (403, "InvalidAccessKeyId", "the server does not know these credentials"),
        (403, "SignatureDoesNotMatch", "the secret key is not that of these credentials"),
        (403, "AccessDenied", "no right to it"),
        (501, "NotImplemented", "may be a conditional put"),
        (400, "Unheard", "does not answer as it should"),
    ],
)
def test_a_refused_bucket_says_why_in_a_sentence(server, behind, status, code, said):
    def refusal(method, *_):
        return (status, code) if method == "PUT" else None

    with proxy(server, refusal=refusal) as between:
        behind(between.server_port)
        with pytest.raises(ConfigError) as refused:
            open_objects("s3://bucket/team")
    assert said in str(refused.value)
    assert len(str(refused.value)) < 300
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("AWS_ENDPOINT", "127.0.0.1:9000", "is no address of a server. Write it as https://"),
        ("AWS_ENDPOINT_URL", "nonsense", "is no address of a server. Write it as https://"),
        ("AWS_SECRET_ACCESS_KEY", "secret\n", "has a line break or blanks around it"),
        ("LDPTREE_HOLDERS_AWS_ACCESS_KEY_ID", " key", "has a line break or blanks around it"),
        ("AWS_ACCESS_KEY_ID", "", "AWS_SECRET_ACCESS_KEY: is set without AWS_ACCESS_KEY_ID"),
        ("AWS_ALLOW_HTTP", "false", "an address of http needs AWS_ALLOW_HTTP=true"),
        ("XDG_CACHE_HOME", __file__, "where copies of what is in a bucket are kept"),
    ],
)
def test_a_variable_that_is_wrong_is_named(behind, monkeypatch, name, value, said):
    behind(1)
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError) as refused:
        open_objects("s3://bucket/team")
    assert said in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.slow
def test_a_right_to_put_without_one_to_list_is_refused(server, behind):
    def refusal(_, path, __):
        return (403, "AccessDenied") if "list-type" in path else None

    with proxy(server, refusal=refusal) as between:
        behind(between.server_port)
        with pytest.raises(ConfigError, match="no right to it"):
            open_objects("s3://bucket/team")


@pytest.mark.slow
def test_a_bucket_that_is_not_there_is_refused(server, behind):
    behind(server)
    with pytest.raises(ConfigError, match="there is no such bucket"):
        open_objects("s3://not-there/team")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ignored", "can"), [(("If-None-Match",), False), (("If-Match",), False), (("If-Modified-Since",), True)]
)
def test_a_store_that_does_not_heed_a_condition_is_refused_and_left_as_it_was(server, behind, ignored, can):
    with proxy(server, dropped=(*ignored, *(name.lower() for name in ignored))) as between:
        behind(between.server_port)
        if can:
            open_objects("s3://bucket/refused")
        else:
            with pytest.raises(ConfigError, match="conditional put"):
                open_objects("s3://bucket/refused")
    plain = bucket_objects(server, "bucket", "unused", prefix="refused")
    assert [entry.name for entry in plain.entries("", deep=True)] == []


@pytest.fixture
def silent():
    """The port of a server that takes connections, and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.mark.parametrize(
    "act",
    [lambda: open_objects("s3://bucket/team"), lambda: locate(["s3://bucket/*.csv"])],
    ids=["work folder", "raw files"],
)
@pytest.mark.parametrize("there", [True, False], ids=["silent", "away"])
def test_a_server_that_does_not_answer_is_told_of_in_a_sentence(behind, silent, monkeypatch, act, there):
    monkeypatch.setattr("storage.objects.bucket.FIRST_ANSWER", timedelta(milliseconds=100))
    behind(silent if there else 1)
    with pytest.raises((ConfigError, DataError)) as refused:
        act()
    said = "does not answer in time" if there else "cannot be reached"
    assert re.search(rf"s3://bucket/.*: cannot be (read|written) \({said}\)\. Look after", str(refused.value))


@pytest.mark.slow
def test_each_side_is_opened_by_its_own_credentials_only(server, behind, monkeypatch, tmp_path):
    with proxy(server, refusal=refuse_other_keys) as between:
        behind(between.server_port)
        monkeypatch.setenv("LDPTREE_CURATOR_AWS_ACCESS_KEY_ID", "of-curator")
        with pytest.raises(
            ConfigError, match=r"s3://holders-side/work: cannot be written .*LDPTREE_HOLDERS_AWS"
        ):
            open_objects(TWO)
        monkeypatch.setenv("LDPTREE_HOLDERS_AWS_ACCESS_KEY_ID", "of-holders")
        objects = open_objects(TWO)
        objects.put("holders/rows", b"private")
        objects.put("curator/totals", b"noisy")
        assert objects.where("") == TWO
        assert objects.where("holders/rows") == "s3://holders-side/work/holders/rows"
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-curator")
        curator = open_objects("s3://curator-side/work")
        assert [entry.name for entry in curator.entries("", deep=True)] == ["curator/totals"]
        with pytest.raises(ConfigError, match="no right to it"):
            open_objects("s3://holders-side/work")


@pytest.mark.slow
def test_a_side_with_keys_of_its_own_takes_nothing_of_another_session(server, behind, monkeypatch):
    tokens = set()

    def note(_, __, headers):
        tokens.add((key_of(headers), headers.get("X-Amz-Security-Token")))

    with proxy(server, refusal=note) as between:
        behind(between.server_port)
        monkeypatch.setenv("AWS_SESSION_TOKEN", "of-somebody")
        monkeypatch.delenv("AWS_ALLOW_HTTP")
        for side in ("HOLDERS", "CURATOR"):
            monkeypatch.setenv(f"LDPTREE_{side}_AWS_ALLOW_HTTP", "true")
        monkeypatch.setenv("LDPTREE_HOLDERS_AWS_ACCESS_KEY_ID", "of-holders")
        monkeypatch.setenv("LDPTREE_HOLDERS_AWS_SECRET_ACCESS_KEY", "secret")
        open_objects(TWO)
    assert tokens == {("of-holders", None), ("key", "of-somebody")}


def test_what_is_no_pair_of_buckets_is_refused():
    for curator in ("s3://a/y", "s3://a/x", "s3://a"):
        with pytest.raises(ConfigError, match="these are one bucket"):
            open_objects(f"holders=s3://a/x,curator={curator}")

    from schemas.tables import StoreConfig

    assert StoreConfig(holders="s3://a/x", curator="s3://b/x").address == "holders=s3://a/x,curator=s3://b/x"
    for wrong, said in (
        ({"holders": "s3://a/x"}, "name both"),
        ({"holders": "s3://a/x", "curator": "s3://a/y"}, "one bucket"),
        ({"holders": "/srv/holders", "curator": "s3://b"}, "pattern"),
    ):
        with pytest.raises(ValueError, match=said):
            StoreConfig(**wrong)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_raw_files_in_a_bucket_are_found_by_a_pattern_and_read_as_copies(monkeypatch, tmp_path, scheme):
    with serve(scheme) as server:
        bucket = server.make_bucket("raw-files")
        for name, value in (server.variables() | {"XDG_CACHE_HOME": str(tmp_path)}).items():
            monkeypatch.setenv(name, value)
        plain = server.objects("raw-files", "unused", prefix="raw")
        for name in ("day-1/a.csv", "day-1/b.csv", "day-1/notes.txt", "day-2/a.csv", "day-2/deep/a.csv"):
            plain.put(name, name.encode())
        found = find_objects(f"{bucket}/raw/day-*/*.csv")
        assert found == [f"{bucket}/raw/day-{name}.csv" for name in ("1/a", "1/b", "2/a")]
        assert find_objects(f"{bucket}/raw/day-2/a.csv") == [f"{bucket}/raw/day-2/a.csv"]
        assert local_file(found[1]).read_bytes() == b"day-1/b.csv"
        plain.put("day-1/b.csv", b"changed")
        assert local_file(found[1]).read_bytes() == b"changed"
        assert local_file("here.csv") == Path("here.csv")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("s3://not-there/*.csv", "there is no such bucket"),
        ("s3://bucket/raw/*.json", "Nothing in this bucket fits it"),
    ],
)
def test_raw_files_that_cannot_be_had_are_told_in_a_sentence(server, behind, path, said):
    behind(server)
    with pytest.raises(DataError) as refused:
        locate([path])
    assert said in str(refused.value)
    assert refused.value.exit_code == 3


@pytest.mark.slow
def test_without_credentials_a_bucket_is_refused_in_a_sentence(server, behind, monkeypatch):
    behind(server)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(ConfigError, match="there are no credentials"):
        open_objects("s3://bucket/team")
