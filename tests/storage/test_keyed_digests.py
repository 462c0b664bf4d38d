"""Digests: one spelling of one value, and a keyed form that tells an outsider nothing."""

from __future__ import annotations

import hashlib
import stat
import threading

import pytest

from ldptree.errors import ArtifactCorrupt
from storage.digests import BLOCK, Hasher, canonical
from storage.holders.secret import secret_of
from storage.objects.folder import FolderObjects


def test_one_value_has_one_spelling():
    assert canonical({"b": [1, 2.5, None], "a": "ü"}) == '{"a":"ü","b":[1,2.5,null]}'.encode()
    assert canonical({"a": 1, "b": 2}) == canonical({"b": 2, "a": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical(float("nan"))


def test_the_plain_digest_is_sha256_however_large_the_file(tmp_path):
    for size in (0, 1, BLOCK, BLOCK + 1):
        path = tmp_path / str(size)
        path.write_bytes(b"x" * size)
        assert Hasher().of_file(path) == hashlib.sha256(b"x" * size).hexdigest()
        assert Hasher(b"k").of_file(path) == Hasher(b"k").of_bytes(b"x" * size)


def test_a_keyed_digest_cannot_be_recomputed_without_the_key():
    data = b"a guess at a private file"
    assert len({Hasher().of_bytes(data), Hasher(b"one").of_bytes(data), Hasher(b"two").of_bytes(data)}) == 3


def test_a_keyed_digest_follows_from_the_plain_one():
    plain = Hasher().of_bytes(b"data")
    assert Hasher(b"key").of_digest(plain) == Hasher(b"key").of_bytes(b"data")
    assert Hasher().of_digest(plain) == plain


def test_the_secret_is_the_holders_alone_and_stays(tmp_path):
    objects = FolderObjects(tmp_path / "one")
    secret = secret_of(objects)
    assert len(secret) == 32
    assert stat.S_IMODE(objects.path("holders/secret").stat().st_mode) == 0o600
    assert secret_of(objects) == secret
    assert secret_of(FolderObjects(tmp_path / "other")) != secret


def test_all_who_make_the_secret_at_once_agree_on_one(tmp_path):
    objects, found, gate = FolderObjects(tmp_path), [], threading.Barrier(8)

    def ask():
        gate.wait()
        found.append(secret_of(objects))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert [p.name for p in (tmp_path / "holders").iterdir()] == ["secret"]


@pytest.mark.parametrize("content", [b"", b"x" * 31])
def test_a_damaged_secret_is_refused_and_never_an_unkeyed_digest(tmp_path, content):
    objects = FolderObjects(tmp_path)
    objects.put("holders/secret", content)
    with pytest.raises(ArtifactCorrupt, match="the holders' secret is damaged"):
        secret_of(objects)
