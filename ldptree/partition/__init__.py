"""How the public rows cut the feature space into cells. One way, one file; one line here."""

from collections.abc import Callable

from ldptree.partition import cart, max_edge, random_edge
from ldptree.partition.tree import Partition

PARTITIONS: dict[str, Callable[..., Partition]] = {
    "cart": cart.grow,
    "max-edge": max_edge.grow,
    "random-edge": random_edge.grow,
}

__all__ = ["PARTITIONS", "Partition"]
