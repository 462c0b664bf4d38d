"""Plants faults, one at a time, in a copy of this checkout, and shows that the tests which promise the opposite catch each.

    python tests/plant_faults.py            # all of them; the last line counts those that were caught
    python tests/plant_faults.py --list     # what is planted where, and which tests should see it; in a second
    python tests/plant_faults.py 3 lock     # those with this number, or with this word in their name

A fault is a text of the program that is replaced by another. The text must stand exactly once in the program, in whatever
file; tests are known by their functions' names. Where either is gone the fault cannot be planted, which is said and counts as
a failure: give the fault its new text or test. Exit code 0: every fault was caught; 1: one was not; 2: one could not be planted.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
PROGRAM = ("ldptree", "schemas", "storage", "tasks", "flows")
COPIED = (
    *PROGRAM,
    "configs",
    "clients",
    "docs",
    "benchmark",
    "tests",
    "conftest.py",
    "pyproject.toml",
    "README.md",
    "CONTRIBUTING.md",
)
PASSED, FAILED = 0, 1
"""How pytest ends where every test passed, and where one failed; anything else is no answer."""


@dataclass(frozen=True)
class Fault:
    """What goes wrong, the text that is replaced and by what, and the tests of which one must fail."""

    name: str
    right: str
    wrong: str
    tests: tuple[str, ...]


FAULTS = (
    # What leaves a holder
    Fault(
        "a leaked bit: unary encoding always sends the own bit",
        "own_bit = words[at] < own",
        "own_bit = True",
        ("test_reports_are_drawn_with_the_stated_probabilities",),
    ),
    Fault(
        "an understated epsilon: randomised response forgets k",
        "log_up(Fraction(self.lie + self.k * (WORD - self.lie), self.lie))",
        "log_up(Fraction(WORD, self.lie))",
        ("test_no_report_exceeds_its_epsilon",),
    ),
    Fault(
        "an epsilon rounded down",
        "return nearest if Decimal(nearest) >= exact else math.nextafter(nearest, math.inf)",
        "return math.nextafter(nearest, 0.0)",
        ("test_a_logarithm_is_rounded_up",),
    ),
    Fault(
        "another order of coins: lies are dealt from the last to the first",
        "block[liars] = words.below(self.k, liars.size)",
        "block[liars] = words.below(self.k, liars.size)[::-1]",
        ("test_a_mechanism_draws_the_same_reports_from_the_same_coins",),
    ),
    Fault(
        "shared noise: the words of a seeded shard do not depend on its rows",
        "round_number, int(Hasher().of_file(shard), 16)]",
        "round_number]",
        ("test_no_two_shards_share_their_noise",),
    ),
    Fault(
        "a client that answers a protocol that is too dear",
        "if protocol.epsilon_exact > max_epsilon:",
        "if False:",
        ("test_more_than_the_allowed_epsilon_is_refused_whatever_the_protocol_claims",),
    ),
    Fault(
        "holders who answer whatever lies in the curator's zone",
        "fault = next(_faults(published, agreed), None)",
        "fault = None",
        ("test_a_question_swapped_between_the_charge_and_the_draw_is_answered_by_nobody",),
    ),
    Fault(
        "a client that answers a simulation's protocol",
        "if protocol.mechanism.is_simulation_device:",
        "if False:",
        ("test_no_client_answers_a_simulation",),
    ),
    Fault(
        "a range from private rows",
        "encoding_of(rows[is_public], self._column_names, self.feature_range)",
        "encoding_of(rows, self._column_names, self.feature_range)",
        ("test_private_rows_change_nothing_but_the_totals",),
    ),
    Fault(
        "a private value in an error",
        "                if is_public:\n                    examples.setdefault",
        "                if True:\n                    examples.setdefault",
        ("test_a_private_row_whose_holder_has_no_name_takes_no_part",),
    ),
    Fault(
        "a holders' file that others may read",
        "aside.chmod(FILE)",
        "aside.chmod(0o644)",
        ("test_a_run_leaves_nothing_of_the_holders_open_to_others",),
    ),
    Fault(
        "keys of the holders' artifacts without their secret",
        "return Hasher(secret_of(self.objects)) if zone in KEYED else Hasher()",
        "return Hasher()",
        ("test_keys_and_digests_of_the_holders_differ_between_work_folders_and_the_curators_do_not",),
    ),
    # Who is asked, how often, and what it costs
    Fault(
        "a skipped charge",
        "added = self._spend(ledger, first, charges, room)",
        "added = ()",
        ("test_what_was_spent_is_known_to_the_next_process",),
    ),
    Fault(
        "a cap that nobody is compared with",
        "if most <= cap:",
        "if True:",
        ("test_one_holder_over_the_cap_refuses_the_charge_of_all",),
    ),
    Fault(
        "a lifetime of which earlier answers are forgotten",
        "if is_over(sum(amounts) + asked, cap, len(amounts) + 1):",
        "if is_over(asked, cap, 1):",
        ("test_a_hundred_campaigns_do_not_drain_a_holder",),
    ),
    Fault(
        "a lost lock: clients of one memory write at once",
        "fcntl.flock(held, fcntl.LOCK_EX)",
        "pass",
        ("test_of_two_that_write_to_one_file_at_once_the_second_waits",),
    ),
    Fault(
        "a retry that redraws: a second draw takes the name of the first",
        "        is_first = not path.exists()\n",
        "        is_first = True\n",
        ("test_a_file_that_stands_is_never_written_over",),
    ),
    Fault(
        "a transaction that is told of after a later one",
        "return before if before and self._parsed(SECRET, before).number > last.number else text",
        "return text",
        ("test_a_run_that_was_overtaken_tells_no_earlier_transaction",),
    ),
    Fault(
        "transactions that write at once",
        '"write": "BEGIN IMMEDIATE"',
        '"write": "BEGIN"',
        ("test_of_runs_that_write_at_once_none_is_forgotten",),
    ),
    Fault(
        "a database whose older copies are not noticed",
        "if transactions[last.number : last.number + 1] != [last]:",
        "if False:",
        ("test_the_holders_zone_of_an_older_backup_is_seen_by_what_the_curator_has",),
    ),
    Fault(
        "a list of people that is read without a look at its digest",
        "if Hasher().of_bytes(row.hashes) != row.digest:",
        "if False:",
        ("test_a_list_of_people_that_was_changed_is_noticed_before_anybody_is_charged",),
    ),
    Fault(
        "a campaign that keeps what a refused charge would have asked",
        "if joining is not None and refused is None:",
        "if joining is not None:",
        ("test_what_a_campaign_keeps_is_committed_with_the_charge_or_not_at_all",),
    ),
    Fault(
        "answers of two runs that were each counted alone",
        "for answer in _new(kept, answers, cap):",
        "for answer in answers:",
        ("test_answers_of_runs_at_once_are_not_more_than_the_cap",),
    ),
    Fault(
        "a put into a bucket that writes over what stands",
        "mode=mode,",
        'mode="overwrite",',
        ("test_of_many_who_write_once_one_wins_and_its_bytes_stand",),
    ),
    Fault(
        "lost reports of real holders are drawn again",
        "return store.has_record(place) and store.find(place) is None",
        "return False",
        ("test_lost_reports_of_real_holders_are_never_drawn_again",),
    ),
    # What the curator makes of reports
    Fault(
        "a wrong unbiasing",
        "- n * self.q) / self.gap",
        "- n * self.q) / self.p",
        ("test_totals_are_unbiased_with_the_stated_variance",),
    ),
    Fault(
        "a wrong variance",
        "from_others = n * self.q * (1 - self.q) / self.gap**2 * squares",
        "from_others = n * self.q * (1 - self.q) / self.gap * squares",
        (
            "test_totals_are_unbiased_with_the_stated_variance",
            "test_linear_variance_is_that_of_the_exact_law",
        ),
    ),
    Fault(
        "a swapped axis: classes are read as cells",
        "counts = unbiased[:-1].reshape(-1, mechanism.n_classes)",
        "counts = unbiased[:-1].reshape(mechanism.n_classes, -1).T",
        ("test_totals_are_the_unbiased_counts_by_cell_and_class",),
    ),
    Fault(
        "a forged report is taken for an honest one",
        "= self._shaped(reports) < self.k",
        "= self._shaped(reports) <= self.k",
        ("test_a_report_that_no_honest_holder_could_send_is_told_and_refused",),
    ),
    Fault(
        "reports of another round are added up",
        'or metadata.get(b"round") != str(round_number).encode()',
        "or False",
        ("test_reports_of_another_round_are_refused",),
    ),
    Fault(
        "a posterior that forgets how unsure the parent is",
        "spread[..., here] = from_variance * shrink**2 + t * shrink",
        "spread[..., here] = t * shrink",
        ("test_posterior_and_likelihood_equal_the_dense_gaussian",),
    ),
    Fault(
        "rows on a threshold go right in raw units and left where they are scaled",
        "goes_left = x <= threshold[node]",
        "goes_left = x < threshold[node]",
        ("test_rows_beside_each_threshold_go_the_same_way",),
    ),
    Fault(
        "a cached step that is not verified",
        "return hasher.of_file(path) == entry.digest",
        "return True",
        ("test_a_damaged_artifact_is_noticed_and_can_be_made_again",),
    ),
)


class GoneError(Exception):
    """A fault cannot be planted: its text or its test is gone."""


def copy_checkout(folder: Path) -> None:
    """The program and its tests, without what they left."""
    left = shutil.ignore_patterns("__pycache__", ".*")
    for name in COPIED:
        source = CHECKOUT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=left)
        elif source.exists():
            shutil.copyfile(source, folder / name)


def file_of(fault: Fault, folder: Path) -> Path:
    """The one file that the fault is planted in. Raises GoneError."""
    files = [path for room in PROGRAM for path in sorted((folder / room).rglob("*.py"))]
    found = [path for path in files for _ in range(path.read_text(encoding="utf-8").count(fault.right))]
    if len(found) != 1:
        where = ", ".join(str(path.relative_to(folder)) for path in found) or "nowhere"
        raise GoneError(f"its text stands {where}, and must stand once: {fault.right!r}")
    return found[0]


def tests_of(fault: Fault, folder: Path) -> list[str]:
    """The tests that should catch a fault, as pytest knows them. Raises GoneError."""
    found = []
    for name in fault.tests:
        pattern = re.compile(rf"^def {name}\(", re.MULTILINE)
        files = [
            path
            for path in sorted((folder / "tests").rglob("test_*.py"))
            if pattern.search(path.read_text(encoding="utf-8"))
        ]
        if not files:
            raise GoneError(f"there is no test {name}")
        found += [f"{path.relative_to(folder)}::{name}" for path in files]
    return found


def run_tests(tests: Sequence[str], folder: Path) -> tuple[int, str]:
    """How pytest ended in the copy, and what it said."""
    options = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", "--tb", "line"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--basetemp", str(folder / "left"), *tests],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def plant(fault: Fault, folder: Path) -> tuple[bool, str]:
    """Plant a fault, run its tests and take it out again; whether it was caught, and what pytest said. Raises GoneError."""
    path, tests = file_of(fault, folder), tests_of(fault, folder)
    sound = path.read_text(encoding="utf-8")
    path.write_text(sound.replace(fault.right, fault.wrong), encoding="utf-8")
    try:
        code, said = run_tests(tests, folder)
    finally:
        path.write_text(sound, encoding="utf-8")
    if code not in (PASSED, FAILED):
        raise GoneError(f"pytest ended with {code}, which is no answer:\n{said[-2000:]}")
    return code == FAILED, said


def wanted(words: Sequence[str]) -> list[tuple[int, Fault]]:
    """The faults with these numbers or words; all where none are given."""
    numbered = list(enumerate(FAULTS, start=1))
    return [
        (number, fault)
        for number, fault in numbered
        if not words
        or any(word == str(number) or (not word.isdigit() and word in fault.name) for word in words)
    ]


def list_faults(faults: Sequence[tuple[int, Fault]]) -> int:
    """Say what is planted where, and what could not be: 2 where there is such a one, else 0."""
    n_gone = 0
    for number, fault in faults:
        try:
            where, tests = file_of(fault, CHECKOUT).relative_to(CHECKOUT), tests_of(fault, CHECKOUT)
            print(f"{number:2}  {fault.name}\n    in {where}, seen by {', '.join(tests)}")
        except GoneError as gone:
            n_gone += 1
            print(f"{number:2}  GONE    {fault.name}: {gone}")
    return 2 if n_gone else 0


def main() -> int:
    """Plant, and say what was caught."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("faults", nargs="*", help="numbers, or words of their names; none: all")
    parser.add_argument("--list", action="store_true", help="say what is planted where, and plant nothing")
    chosen = parser.parse_args()
    faults = wanted(chosen.faults)
    if chosen.list:
        return list_faults(faults)
    n_caught, n_gone = 0, 0
    with tempfile.TemporaryDirectory(prefix="ldptree-faults-") as name:
        folder = Path(name)
        copy_checkout(folder)
        sound = []
        for _, fault in faults:
            try:
                sound += tests_of(fault, folder)
            except GoneError:
                continue  # said below
        code, said = run_tests(sorted(set(sound)), folder)
        if code != PASSED:
            print(f"The tests do not pass with no fault planted:\n{said[-3000:]}")
            return 2
        for number, fault in faults:
            try:
                is_caught, _ = plant(fault, folder)
            except GoneError as gone:
                n_gone += 1
                print(f"{number:2}  GONE    {fault.name}: {gone}", flush=True)
                continue
            n_caught += is_caught
            print(f"{number:2}  {'caught' if is_caught else 'MISSED'}  {fault.name}", flush=True)
    print(f"{n_caught} of {len(faults)} faults were caught")
    return 2 if n_gone else int(n_caught < len(faults))


if __name__ == "__main__":
    sys.exit(main())
