"""Words: where coins come from."""

import numpy as np
import pytest
from forked import in_a_fork
from seeded_words import words as seeded

from ldptree.coins import Words
from ldptree.errors import ConfigError


def test_the_seeded_stream_is_pinned_and_goes_on_from_block_to_block():
    """A seeded run must give the same bytes next year."""
    source = seeded(1)
    together = np.concatenate([source.block(7), source.block(0), source.block(13)])
    assert together.tolist() == list(np.random.SFC64(np.random.SeedSequence([1])).random_raw(20))
    assert source.is_seeded
    assert not np.intersect1d(together, seeded(2).block(100)).size


def test_the_operating_system_gives_words_that_differ_and_can_be_written():
    words = Words.system()
    block = words.block(1000)
    assert block.dtype == np.uint64
    assert np.unique(np.concatenate([block, Words.system().block(1000)])).size == 2000
    block[0] = 0
    assert not words.is_seeded


@pytest.mark.parametrize("make", [Words.system, lambda: seeded(1)], ids=["system", "seeded"])
def test_no_generator_repeats_the_stream_of_another_and_those_of_a_seed_are_the_same_in_every_run(make):
    one, again, other = (
        [words.generator().integers(2**62) for _ in range(3)] for words in (make(), make(), seeded(2))
    )
    assert len({*one, *other}) == 6
    assert (one == again) == make().is_seeded


def test_after_a_fork_the_operating_systems_generators_differ_from_the_parents():
    words = Words.system()

    def draw():
        return words.generator().integers(2**62)

    assert len({in_a_fork(draw), in_a_fork(draw), str(draw())}) == 3


@pytest.mark.parametrize(
    "draw", [Words.generator, lambda words: words.block(1), lambda words: words.below(3, 1)]
)
def test_after_a_fork_words_of_a_seed_are_refused_as_they_would_repeat(draw):
    words = seeded(1)

    def act():
        with pytest.raises(ConfigError, match="belong to the process that made them"):
            draw(words)
        return "refused"

    assert in_a_fork(act) == "refused"
    draw(words)  # and go on where they were made


def test_values_below_k_are_uniform_with_no_remainder_favoured():
    """Chi-square of 50,000 draws from one range and from each column of several; false alarm 1e-6, fixed seed."""
    drawn = seeded(4).below(np.array([1, 2, 5, 2**63], dtype=np.uint64), 50_000)
    assert drawn.shape == (50_000, 4)
    assert not drawn[:, 0].any()
    for column, k, bound in (
        (seeded(3).below(5, 50_000), 5, 33.4),
        (drawn[:, 1], 2, 24),
        (drawn[:, 2], 5, 33.4),
        (drawn[:, 3] >> np.uint64(61), 4, 31),
    ):
        counts = np.bincount(column.astype(np.int64), minlength=k)
        assert counts.size == k
        assert ((counts - 50_000 / k) ** 2 / (50_000 / k)).sum() < bound


def test_words_of_the_incomplete_run_are_drawn_again():
    """A word of the last, incomplete run of k is replaced by the next word of the source."""
    k = 3 * 2**61  # 2^64 = 2 k + 2^62: the top quarter is incomplete
    queue = [2**64 - 1, 7, 2 * k, 2**64 - 2, k + 1, 9]

    def draw(n):
        taken, queue[:] = queue[:n], queue[n:]
        return np.array(taken, dtype=np.uint64)

    words = Words(draw, np.random.SeedSequence(0), is_seeded=True)
    assert words.below(k, 3).tolist() == [9, 7, 1]
