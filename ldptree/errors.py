"""The errors a user can meet, one tree. Each says what was found, where, and what to do.

Nothing here formats a private value: messages about private rows name the file, the column and the kind of fault only.
"""

from __future__ import annotations

from ldptree.plain_text import make_visible

LONGEST_LINE = 2_000
"""Characters of a line that a message shows."""


class LdptreeError(Exception):
    """Anything ldptree stops on; `exit_code` is what the command line returns."""

    exit_code = 1

    def __str__(self) -> str:
        """Return the message as text that does nothing, the middle of a long line left out."""
        return "\n".join(map(_short, make_visible(super().__str__()).split("\n")))


class ConfigError(LdptreeError, ValueError):
    """The command, the configuration or a parameter is wrong (exit code 2)."""

    exit_code = 2


class DataError(LdptreeError, ValueError):
    """The data cannot be used, or a validation failed (exit code 3)."""

    exit_code = 3


class DataTypeError(DataError, TypeError):
    """The same, where the conventions of numpy and scikit-learn want a TypeError."""


class BudgetError(LdptreeError):
    """A holder would spend more than the budget allows (exit code 4)."""

    exit_code = 4


class ProtocolMismatch(LdptreeError):  # noqa: N818 - the field's word
    """Reports and protocol do not belong together (exit code 5)."""

    exit_code = 5


class ArtifactCorrupt(LdptreeError):  # noqa: N818 - the house's word
    """An artifact that cannot be made again is missing or damaged (exit code 5)."""

    exit_code = 5


class AssumedRangeWarning(UserWarning):
    """An estimator assumes the range of a feature or of the label, or clips public values to the range it was given.

    Nothing can be learned from clipped values. Public values alone decide whether this warning comes, and what it says.
    """


class DistilledBaseWarning(UserWarning):
    """A public model of one's own cannot be published as it is, so that trees stand for it, and how far off they are."""


def _short(line: str) -> str:
    half = LONGEST_LINE // 2
    return line if len(line) <= LONGEST_LINE else f"{line[:half]}...{line[-half:]}"
