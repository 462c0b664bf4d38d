"""The servers of buckets on this machine that the same tests run against, by the scheme of their addresses."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

import pytest

SCHEMES = ("s3", "gs", "az")


@dataclass(frozen=True)
class BucketServer:
    """A server of one scheme; `module` says how it is spoken to. Another port is that of a proxy before it."""

    scheme: str
    port: int
    module: ModuleType

    def make_bucket(self, name):
        """The address of a new bucket."""
        self.module.make_bucket(self.port, name)
        return f"{self.scheme}://{name}"

    def objects(self, name, root, *, port=None, **more):
        """The objects of a bucket, with what copies of them are kept in `root`."""
        return self.module.bucket_objects(port or self.port, name, root, **more)

    def variables(self, port=None):
        """What somebody sets who uses it."""
        return self.module.variables(port or self.port)


@contextmanager
def serve(scheme):
    """A server with nothing in it. The test is skipped where there can be none."""
    pytest.importorskip("obstore")
    if scheme == "s3":
        pytest.importorskip("moto")
    module = import_module(f"{scheme}_server")
    with getattr(module, f"{scheme}_server")() as port:
        yield BucketServer(scheme, port, module)
