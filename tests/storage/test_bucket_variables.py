"""What somebody sets for a bucket of Google's or Azure's: what is wrong is told in a sentence, and each side has its own."""

from __future__ import annotations

import json
import os
import re
from datetime import timedelta

import pytest
from first_fast import first_fast

pytest.importorskip("obstore")
pytest.importorskip("moto")

from az_server import ACCOUNT, KEY
from bucket_servers import serve
from gs_server import WRONG
from s3_server import proxy

from ldptree.errors import ConfigError
from storage.objects.addresses import open_objects

SECRETS = {"gs": "GOOGLE_BEARER_TOKEN", "az": "AZURE_STORAGE_ACCOUNT_KEY"}
SERVERS = {"gs": "GOOGLE_BASE_URL", "az": "AZURE_STORAGE_ENDPOINT"}
READ_ONLY = {"gs": (403, "AccessDenied"), "az": (403, "AuthorizationPermissionMismatch")}


@pytest.fixture(scope="module", params=first_fast("gs", "az"))
def server(request):
    with serve(request.param) as server:
        server.make_bucket("bucket")
        yield server


@pytest.fixture
def say(monkeypatch, tmp_path):
    """Set these variables, and no other of a bucket."""
    for name in os.environ:
        if name.startswith(("AWS_", "GOOGLE_", "AZURE_", "LDPTREE_HOLDERS_", "LDPTREE_CURATOR_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def set_all(variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return set_all


def refusal_of(address):
    """What is said of an address that cannot be used; it is one sentence of a reason, and one of what to do."""
    with pytest.raises(ConfigError) as refused:
        open_objects(address)
    said = str(refused.value)
    assert refused.value.exit_code == 2
    assert len(said) < 350
    assert "s3://" not in said
    return said


def test_variables_of_another_scheme_do_not_matter(server, say):
    say(server.variables() | {"AWS_ENDPOINT": "nonsense", "AWS_ACCESS_KEY_ID": "alone"})
    objects = open_objects(f"{server.scheme}://bucket/fine")
    assert objects.create("a/b", b"mine")
    assert [entry.name for entry in objects.entries("", deep=True)] == ["a/b"]


@pytest.mark.parametrize(
    ("bucket", "changed", "said"),
    [
        ("not-there", {}, r"there is no such (bucket|container)"),
        ("bucket", {"secret": WRONG}, r"does not know these credentials|is not that of this account"),
        ("bucket", {"secret": None}, r"there are no credentials"),
        ("bucket", {"server": "http://127.0.0.1:1/x"}, r"cannot be reached"),
        ("bucket", {"http": None}, r"an address of http needs (GOOGLE|AZURE)_ALLOW_HTTP=true"),
    ],
)
def test_a_bucket_that_cannot_be_used_says_why(server, say, monkeypatch, bucket, changed, said):
    monkeypatch.setattr("storage.objects.bucket.FIRST_ANSWER", timedelta(milliseconds=300))
    scheme, variables = server.scheme, server.variables()
    names = {
        "secret": SECRETS[scheme],
        "server": SERVERS[scheme],
        "http": next(n for n in variables if "HTTP" in n),
    }
    for what, value in changed.items():
        variables[names[what]] = value
    say({name: value for name, value in variables.items() if value is not None})
    assert re.search(
        rf"{scheme}://{bucket}/team: cannot be written \(.*({said}).*\)\. Look after",
        refusal_of(f"{scheme}://{bucket}/team"),
    )


def test_a_right_to_read_only_is_refused(server, say):
    def refusal(method, *_):
        return READ_ONLY[server.scheme] if method == "PUT" else None

    with proxy(server.port, refusal=refusal) as between:
        say(server.variables(between.server_port))
        assert "no right to it" in refusal_of(f"{server.scheme}://bucket/team")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "the file of the credentials cannot be opened"),
        ("{nonsense", "the credentials are no JSON of a service account or a user"),
        (
            json.dumps({"type": "external_account"}),
            "the credentials are no JSON of a service account or a user",
        ),
        (
            json.dumps(
                {
                    "type": "service_account",
                    "private_key": "none",
                    "private_key_id": "1",
                    "client_email": "a@b",
                }
            ),
            "the private key of the credentials is none",
        ),
    ],
)
@pytest.mark.parametrize("name", ["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT"])
def test_googles_credentials_that_are_none_are_told_of(say, tmp_path, name, content, said):
    file = tmp_path / "credentials.json"
    if content is not None:
        file.write_text(content)
    say({name: str(file)})
    assert said in refusal_of("gs://bucket/team")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("scheme", "variables", "said"),
    [
        ("gs", {"GOOGLE_BASE_URL": "127.0.0.1:9000"}, "GOOGLE_BASE_URL: is no address of a server"),
        ("gs", {"GOOGLE_BEARER_TOKEN": "token\n"}, "GOOGLE_BEARER_TOKEN: has a line break"),
        ("gs", {"GOOGLE_SERVICE_ACCOUNT": "x", "GOOGLE_SERVICE_ACCOUNT_KEY": "y"}, "are both set"),
        ("az", {}, "AZURE_STORAGE_ACCOUNT_NAME is not set"),
        ("az", {"AZURE_STORAGE_ENDPOINT": "nonsense"}, "AZURE_STORAGE_ENDPOINT: is no address of a server"),
        ("az", {"AZURE_STORAGE_ACCOUNT_KEY": "not-Base64!"}, "the account's key is no Base64"),
        ("az", {"AZURE_STORAGE_SAS_KEY": "nonsense"}, "the SAS key is none"),
    ],
)
def test_a_variable_that_is_wrong_is_named(say, tmp_path, scheme, variables, said):
    account = {"AZURE_STORAGE_ACCOUNT_NAME": "somebody"} if variables and scheme == "az" else {}
    say(variables | account)
    assert said in refusal_of(f"{scheme}://bucket/team")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("side", ["", "LDPTREE_HOLDERS_"])
def test_a_variable_of_the_client_counts_for_all_or_for_one_side(say, side):
    """A proxy that is not there: nothing behind it is reached."""
    two = "holders=gs://holders-side/work,curator=gs://curator-side/work"
    with serve("gs") as server:
        for name in ("holders-side", "curator-side"):
            server.make_bucket(name)
        say(server.variables() | {f"{side}GOOGLE_TIMEOUT": "30s"})
        open_objects(two if side else "gs://curator-side/work")
        say({f"{side}GOOGLE_PROXY_URL": "http://127.0.0.1:1"})
        assert "cannot be reached" in refusal_of(two if side else "gs://curator-side/work")


def test_an_account_without_a_login_is_that_of_an_emulator(say, tmp_path):
    """Google's clients say so with `disable_oauth`."""
    with serve("gs") as server:
        server.make_bucket("bucket")
        account = {"private_key": "", "private_key_id": "", "client_email": "", "disable_oauth": True}
        file = tmp_path / "account.json"
        file.write_text(json.dumps(account | {"gcs_base_url": f"http://127.0.0.1:{server.port}"}))
        say({"GOOGLE_SERVICE_ACCOUNT": str(file), "GOOGLE_ALLOW_HTTP": "true"})
        assert open_objects("gs://bucket/team").create("a", b"mine")


def test_each_side_of_google_is_opened_by_its_own_credentials_only(say, monkeypatch):
    tokens = {"holders-side": "Bearer of-holders", "curator-side": "Bearer of-curator"}

    def refuse_others(_, path, headers):
        is_own = tokens[re.split(r"[/?]", path)[1].replace("%2D", "-")] == headers.get("Authorization")
        return None if is_own else (403, "AccessDenied")

    two = "holders=gs://holders-side/work,curator=gs://curator-side/work"
    with serve("gs") as server:
        for name in tokens:
            server.make_bucket(name)
        with proxy(server.port, refusal=refuse_others) as between:
            say(server.variables(between.server_port) | {"LDPTREE_CURATOR_GOOGLE_BEARER_TOKEN": "of-curator"})
            assert "LDPTREE_HOLDERS_GOOGLE_SERVICE_ACCOUNT and so on" in refusal_of(two)
            monkeypatch.setenv("LDPTREE_HOLDERS_GOOGLE_BEARER_TOKEN", "of-holders")
            objects = open_objects(two)
            objects.put("holders/rows", b"private")
            objects.put("curator/totals", b"noisy")
            monkeypatch.setenv("GOOGLE_BEARER_TOKEN", "of-curator")
            assert [one.name for one in open_objects("gs://curator-side/work").entries("", deep=True)] == [
                "curator/totals"
            ]
            assert "no right to it" in refusal_of("gs://holders-side/work")


@pytest.fixture
def azure(say):
    """A server of Azure's with a container for each side, whose account's key is not said."""
    with serve("az") as server:
        for name in ("holders-side", "curator-side"):
            server.make_bucket(name)
        say({name: value for name, value in server.variables().items() if name != SECRETS["az"]})
        yield server.module


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rights", "said"),
    [
        ("rl", r"\(no right to it"),
        ("racwd", r"\(no right to it"),
        ("racwl", r"\(no right to delete in it\)"),
    ],
)
def test_a_signature_for_less_than_a_run_does_is_refused(azure, say, rights, said):
    say({"AZURE_STORAGE_SAS_KEY": azure.signature_for("holders-side", rights)})
    assert re.search(said, refusal_of("az://holders-side/team"))


@pytest.mark.slow
def test_each_side_of_azure_is_opened_by_its_own_signature_only(azure, say):
    two = "holders=az://holders-side/work,curator=az://curator-side/work"
    signatures = {side: azure.signature_for(f"{side}-side", "racwdl") for side in ("holders", "curator")}
    say({"LDPTREE_HOLDERS_AZURE_STORAGE_SAS_KEY": signatures["holders"]})
    say({"LDPTREE_CURATOR_AZURE_STORAGE_SAS_KEY": signatures["holders"]})
    assert "LDPTREE_CURATOR_AZURE_STORAGE_ACCOUNT_KEY and so on" in refusal_of(two)
    say({"LDPTREE_CURATOR_AZURE_STORAGE_SAS_KEY": signatures["curator"]})
    objects = open_objects(two)
    objects.put("holders/rows", b"private")
    objects.put("curator/totals", b"noisy")
    say({"AZURE_STORAGE_SAS_KEY": signatures["curator"]})
    curator = open_objects("az://curator-side/work")
    assert [one.name for one in curator.entries("", deep=True)] == ["curator/totals"]
    assert "no right to it" in refusal_of("az://holders-side/work")


@pytest.mark.parametrize(
    ("scheme", "general", "own"),
    [
        ("az", ("AZURE_STORAGE_ACCOUNT_KEY", KEY), ("AZURE_STORAGE_SAS_KEY", "sv=1&sig=2")),
        ("gs", ("GOOGLE_BEARER_TOKEN", "token"), ("GOOGLE_SERVICE_ACCOUNT", "here.json")),
    ],
)
def test_a_side_is_never_opened_by_what_is_said_for_both(say, scheme, general, own):
    """obstore would go by the key of the account, or by the token."""
    say(dict([general]) | {f"LDPTREE_CURATOR_{own[0]}": own[1], "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT})
    said = refusal_of(f"holders={scheme}://one/work,curator={scheme}://two/work")
    assert f"{general[0]}: may be taken in place of LDPTREE_CURATOR_{own[0]}" in said
