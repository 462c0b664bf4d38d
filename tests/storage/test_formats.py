"""Every kept file has a format, a version and a digest: damage is noticed, and a later version is not taken for damage."""

from __future__ import annotations

import json
import re

import pytest

from ldptree.errors import ArtifactCorrupt
from storage.formats import KEY, VERSION, Damaged, read_stamped, stamped
from storage.objects.folder import FolderObjects

CONTENT = {"a": 1, "b": {2: 0.1, 10: None, "ü": [1.5, "\ud800", True]}, "c": (float("inf"), "x" * 50)}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "kept.json"
    path.write_bytes(stamped("kept", CONTENT))
    return path


def read_kept(path, kind, remedy):
    return read_stamped(FolderObjects(path.parent), path.name, kind, remedy)


def test_what_was_kept_is_read_again(path):
    found = read_kept(path, "kept", "")
    assert found == json.loads(json.dumps(CONTENT))
    path.write_bytes(stamped("kept", found))
    assert read_kept(path, "kept", "") == found


def test_a_file_without_its_format_is_damage(path):
    path.write_text('{"a": 1}')
    with pytest.raises(Damaged, match="does not match"):
        read_kept(path, "kept", "")


def test_every_flipped_bit_is_noticed(path):
    """But for one between the tokens, which says the same."""
    content = path.read_bytes()
    whole = read_kept(path, "kept", "")
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        try:
            found = read_kept(path, "kept", "")
        except ArtifactCorrupt:
            continue
        assert found == whole


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b"\xff\xfe", b"\x00" * 9, b"[" * 100_000])
def test_garbage_is_damage(path, content):
    path.write_bytes(content)
    with pytest.raises(Damaged, match=re.escape(f"{path}: damaged. Restore it.")):
        read_kept(path, "kept", "Restore it.")


def test_a_cut_file_is_damage(path):
    content = path.read_bytes()
    for size in range(0, len(content), 7):
        path.write_bytes(content[:size])
        with pytest.raises(Damaged):
            read_kept(path, "kept", "")


def test_a_file_in_the_place_of_another_is_damage(path):
    with pytest.raises(Damaged, match="does not match"):
        read_kept(path, "other", "")


@pytest.mark.parametrize(("version", "which"), [(VERSION + 1, "a later"), (VERSION - 1, "an earlier")])
def test_a_file_of_another_ldptree_says_so(path, version, which):
    told = json.loads(path.read_bytes())
    told[KEY] = {"name": "renamed", "version": version, "seal": "new"}
    path.write_text(json.dumps(told))
    with pytest.raises(
        ArtifactCorrupt, match=rf"written by {which} ldptree \(format version {version}; this one reads 1\)"
    ) as fault:
        read_kept(path, "kept", "")
    assert not isinstance(fault.value, Damaged)
    assert fault.value.exit_code == 5
