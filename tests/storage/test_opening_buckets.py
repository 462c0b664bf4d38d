"""A bucket of any kind that cannot be used is told of in a sentence, before anybody is asked; its client's variables count."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
from datetime import timedelta
from pathlib import Path

import pytest
from first_fast import first_fast

pytest.importorskip("obstore")
pytest.importorskip("moto")

from bucket_servers import SCHEMES, serve
from gs_server import WRONG
from s3_server import proxy

from ldptree.errors import ConfigError, DataError
from schemas.named_files import BUCKETS
from storage.objects.addresses import bucket_address, find_objects, local_file, open_objects
from tasks.data.source import locate

SECRETS = {"s3": "AWS_SECRET_ACCESS_KEY", "gs": "GOOGLE_BEARER_TOKEN", "az": "AZURE_STORAGE_ACCOUNT_KEY"}
SERVERS = {"s3": "AWS_ENDPOINT", "gs": "GOOGLE_BASE_URL", "az": "AZURE_STORAGE_ENDPOINT"}


@pytest.fixture(scope="module")
def servers():
    """A server of each kind that is asked for, with a bucket."""
    with contextlib.ExitStack() as stack:
        running = {}

        def of(scheme):
            if scheme not in running:
                running[scheme] = stack.enter_context(serve(scheme))
                running[scheme].make_bucket("bucket")
            return running[scheme]

        yield of


@pytest.fixture
def say(monkeypatch, tmp_path):
    """Set these variables, and no other of a bucket; None: not that one."""
    for name in os.environ:
        if name.startswith(("AWS_", "GOOGLE_", "AZURE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("storage.objects.bucket.FIRST_ANSWER", timedelta(milliseconds=300))

    def set_all(variables):
        for name, value in variables.items():
            if value is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, value)

    return set_all


def refusal_of(address):
    """What is said of an address that cannot be used: a sentence with the reason, and one of what to do."""
    with pytest.raises(ConfigError) as refused:
        open_objects(address)
    assert refused.value.exit_code == 2
    assert len(str(refused.value)) < 350
    return str(refused.value)


@pytest.mark.parametrize("kind", BUCKETS)
def test_a_bucket_of_every_kind_is_known(kind):
    assert bucket_address(Path(f"{kind}bucket/team")) == f"{kind}bucket/team"


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
        "holders=s3://one,curator=s3://two",
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


KINDS = first_fast(*SCHEMES)
ABSENT = "there is no such (bucket|container)"
UNKNOWN = "does not know these credentials|is not that of this account|the secret key is not that of"
NO_HTTP = "an address of http needs (AWS|GOOGLE|AZURE)_ALLOW_HTTP=true"


@pytest.mark.parametrize("scheme", KINDS)
def test_a_bucket_that_can_be_used_is_opened_whatever_variables_of_another_scheme_say(servers, say, scheme):
    server = servers(scheme)
    other = {"AWS_ENDPOINT": "nonsense"} if scheme != "s3" else {"GOOGLE_BASE_URL": "nonsense"}
    say(server.variables() | other)
    objects = open_objects(f"{scheme}://bucket/fine")
    assert objects.create("a/b", b"mine")
    assert [entry.name for entry in objects.entries("", deep=True)] == ["a/b"]


@pytest.mark.parametrize("scheme", KINDS)
@pytest.mark.parametrize(
    ("bucket", "changed", "said"),
    [
        ("not-there", {}, ABSENT),
        ("bucket", {"secret": WRONG}, UNKNOWN),
        ("bucket", {"secret": None}, "there are no credentials|is set without"),
        ("bucket", {"server": "http://127.0.0.1:1/x"}, "cannot be reached"),
        ("bucket", {"http": None}, NO_HTTP),
    ],
)
def test_a_bucket_that_cannot_be_used_says_why(servers, say, scheme, bucket, changed, said):
    variables = servers(scheme).variables()
    http = next(name for name in variables if "HTTP" in name)
    names = {"secret": SECRETS[scheme], "server": SERVERS[scheme], "http": http}
    if changed == {"secret": WRONG} and scheme == "s3":
        return  # moto takes every secret
    say(variables | {names[what]: value for what, value in changed.items()})
    assert re.search(f"({said})", refusal_of(f"{scheme}://bucket/team".replace("bucket", bucket)))


REFUSALS = [
    ("gs", "PUT", 403, "AccessDenied", "no right to it"),
    *(
        pytest.param("s3", "PUT", status, code, said, marks=pytest.mark.slow)
        for status, code, said in (
            (403, "RequestTimeTooSkewed", "the clock of this machine is wrong"),
            (403, "InvalidAccessKeyId", "the server does not know these credentials"),
            (403, "SignatureDoesNotMatch", "the secret key is not that of these credentials"),
            (403, "AccessDenied", "no right to it"),
            (501, "NotImplemented", "may be a conditional put"),
            (400, "Unheard", "does not answer as it should"),
        )
    ),
    pytest.param(
        "az", "PUT", 403, "AuthorizationPermissionMismatch", "no right to it", marks=pytest.mark.slow
    ),
    pytest.param("s3", "list-type", 403, "AccessDenied", "no right to it", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("scheme", "what", "status", "code", "said"), REFUSALS)
def test_a_request_that_is_refused_is_told_of_by_its_reason(servers, say, scheme, what, status, code, said):
    """A right to read alone, or to put without one to list, is not enough."""

    def refusal(method, path, _):
        return (status, code) if what == method or what in path else None

    server = servers(scheme)
    with proxy(server.port, refusal=refusal) as between:
        say(server.variables(between.server_port))
        assert said in refusal_of(f"{scheme}://bucket/team")


ACCOUNT = {"type": "service_account", "private_key": "none", "private_key_id": "1", "client_email": "a@b"}
AWS = {"AWS_ENDPOINT": "http://127.0.0.1:1", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"} | {
    "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
}  # fmt: skip
AZURE = {"AZURE_STORAGE_ACCOUNT_NAME": "somebody"}
# fmt: off
WRONG_VARIABLES = [
    ("s3", AWS | {"AWS_ENDPOINT": "127.0.0.1:9000"}, "is no address of a server. Write it as https://"),
    ("s3", AWS | {"AWS_ENDPOINT_URL": "nonsense"}, "is no address of a server. Write it as https://"),
    ("s3", AWS | {"AWS_SECRET_ACCESS_KEY": "secret\n"}, "has a line break or blanks around it"),
    ("s3", AWS | {"AWS_ACCESS_KEY_ID": ""}, "AWS_SECRET_ACCESS_KEY: is set without AWS_ACCESS_KEY_ID"),
    ("s3", AWS | {"XDG_CACHE_HOME": __file__}, "where copies of what is in a bucket are kept"),
    ("gs", {"GOOGLE_BASE_URL": "127.0.0.1:9000"}, "GOOGLE_BASE_URL: is no address of a server"),
    ("gs", {"GOOGLE_BEARER_TOKEN": "token\n"}, "GOOGLE_BEARER_TOKEN: has a line break"),
    ("gs", {"GOOGLE_SERVICE_ACCOUNT": "x", "GOOGLE_SERVICE_ACCOUNT_KEY": "y"}, "are both set"),
    *(("gs", {name: content}, said)
      for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT")
      for content, said in (
          (Path("absent.json"), "the file of the credentials cannot be opened"),
          (b"{nonsense", "the credentials are no JSON of a service account or a user"),
          (b'{"type": "external_account"}', "the credentials are no JSON of a service account or a user"),
          (json.dumps(ACCOUNT).encode(), "the private key of the credentials is none"),
      )),
    ("az", {}, "AZURE_STORAGE_ACCOUNT_NAME is not set"),
    ("az", AZURE | {"AZURE_STORAGE_ENDPOINT": "nonsense"}, "AZURE_STORAGE_ENDPOINT: is no address of a server"),
    ("az", AZURE | {"AZURE_STORAGE_ACCOUNT_KEY": "not-Base64!"}, "the account's key is no Base64"),
    ("az", AZURE | {"AZURE_STORAGE_SAS_KEY": "nonsense"}, "the SAS key is none"),
]
# fmt: on


@pytest.mark.parametrize(("scheme", "variables", "said"), WRONG_VARIABLES)
def test_a_variable_that_is_wrong_is_named(say, tmp_path, scheme, variables, said):
    """A value of bytes stands in a file, whose name the variable is."""
    for name, value in variables.items():
        if isinstance(value, bytes):
            (tmp_path / "credentials.json").write_bytes(value)
            variables = variables | {name: str(tmp_path / "credentials.json")}
    say({name: None if value is None else str(value) for name, value in variables.items()})
    told = refusal_of(f"{scheme}://bucket/team")
    assert re.search(said, told)
    assert "secret" not in told
    assert not (tmp_path / "cache").exists()


def test_a_variable_of_the_client_counts(servers, say):
    """A proxy that is not there: nothing behind it is reached."""
    say(servers("gs").variables() | {"GOOGLE_TIMEOUT": "30s"})
    open_objects("gs://bucket/work")
    say({"GOOGLE_PROXY_URL": "http://127.0.0.1:1"})
    assert "cannot be reached" in refusal_of("gs://bucket/work")


def test_an_account_without_a_login_is_that_of_an_emulator(servers, say, tmp_path):
    """Google's clients say so with `disable_oauth`."""
    account = {"private_key": "", "private_key_id": "", "client_email": "", "disable_oauth": True}
    file = tmp_path / "account.json"
    file.write_text(json.dumps(account | {"gcs_base_url": f"http://127.0.0.1:{servers('gs').port}"}))
    say({"GOOGLE_SERVICE_ACCOUNT": str(file), "GOOGLE_ALLOW_HTTP": "true"})
    assert open_objects("gs://bucket/emulated").create("a", b"mine")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rights", "said"),
    [("rl", "no right to it"), ("racwd", "no right to it"), ("racwl", "no right to delete in it")],
)
def test_a_signature_for_less_than_a_run_does_is_refused(servers, say, rights, said):
    server = servers("az")
    say(server.variables() | {SECRETS["az"]: None})
    say({"AZURE_STORAGE_SAS_KEY": server.module.signature_for("bucket", rights)})
    assert said in refusal_of("az://bucket/team")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ignored", "can"), [(("If-None-Match",), False), (("If-Match",), False), (("If-Modified-Since",), True)]
)
def test_a_store_that_does_not_heed_a_condition_is_refused_and_left_as_it_was(servers, say, ignored, can):
    server = servers("s3")
    with proxy(server.port, dropped=(*ignored, *(name.lower() for name in ignored))) as between:
        say(server.variables(between.server_port))
        if can:
            open_objects("s3://bucket/refused")
        else:
            with pytest.raises(ConfigError, match="conditional put"):
                open_objects("s3://bucket/refused")
    plain = server.objects("bucket", "unused", prefix="refused")
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
def test_a_server_that_does_not_answer_is_told_of_in_a_sentence(say, silent, act, there):
    say(AWS | {"AWS_ENDPOINT": f"http://127.0.0.1:{silent if there else 1}"})
    with pytest.raises((ConfigError, DataError)) as refused:
        act()
    said = "does not answer in time" if there else "cannot be reached"
    assert re.search(rf"s3://bucket/.*: cannot be (read|written) \({said}\)\. Check", str(refused.value))


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_raw_files_in_a_bucket_are_found_by_a_pattern_and_read_as_copies(servers, say, tmp_path, scheme):
    server = servers(scheme)
    bucket = server.make_bucket("raw-files")
    say(server.variables() | {"XDG_CACHE_HOME": str(tmp_path)})
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
def test_raw_files_that_cannot_be_had_are_told_in_a_sentence(servers, say, path, said):
    say(servers("s3").variables())
    with pytest.raises(DataError) as refused:
        locate([path])
    assert said in str(refused.value)
    assert refused.value.exit_code == 3
