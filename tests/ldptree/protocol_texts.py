"""What tests of protocols and clients share: a forger's signature, and a client with no memory and no wish to save."""

from __future__ import annotations

import hashlib
import json

from ldptree.client import Client


def signed(data: dict) -> str:
    """The text of a protocol's fields with a digest that fits, as a forger would write it: infinity as JSON can spell it."""
    content = {key: value for key, value in data.items() if key != "digest"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    signed = json.dumps(content | {"digest": hashlib.sha256(text.encode()).hexdigest()})
    return signed.replace("Infinity", "1e999")


def client_of(protocol, *, memory=None, **settings) -> Client:
    """A client that allows any epsilon, and that forgets unless it has a memory."""
    return Client(protocol, max_epsilon=64.0, memory={} if memory is None else memory, **settings)
