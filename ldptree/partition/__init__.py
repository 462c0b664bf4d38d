"""How the public rows cut the feature space into cells. One way, one file; one line here."""

from ldptree.partition import cart, max_edge
from ldptree.partition.tree import Partition

PARTITIONS = {"cart": cart.grow, "max-edge": max_edge.grow}

__all__ = ["PARTITIONS", "Partition"]
