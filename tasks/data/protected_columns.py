"""Find the raw columns that holders protect, and refuse anything public that is made of one.

Who takes part and who is public is seen of everybody, and so is a feature that is not protected. Columns are known by their
names here; no row is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ldptree.errors import ConfigError
from schemas.dataset import DatasetSpec


@dataclass(frozen=True)
class ProtectedColumns:
    """The columns that holders protect, as spelled in the data. `every_feature` if their mask is not released."""

    names: frozenset[str] = frozenset()
    every_feature: bool = False

    @staticmethod
    def of(
        spec: DatasetSpec,
        columns: Sequence[str],
        *,
        rule_columns: Sequence[str],
        made_of: Mapping[str, Sequence[str]],
        declared: Sequence[str],
        every_feature: bool = False,
    ) -> ProtectedColumns:
        """Return what is `declared`, with `every_feature` all features of `columns` too, and what these are made of.

        `made_of`: the columns that each derived one uses. One that is shown all the same is not protected by what is made of it.
        """
        features = spec.features([*columns, *made_of], rule_columns)
        names = {*declared, *(features if every_feature else ())}
        shown = set(features) - names
        sources = {used for name in names for used in made_of.get(name, ()) if used not in shown}
        return ProtectedColumns(frozenset(names | sources), every_feature)

    def check_not_revealed(self, where: str, used: Sequence[str], what: str, remedy: str = "") -> None:
        """Raises ConfigError where something that everybody sees would tell of a value that holders protect."""
        for column in used:
            if column in self.names:
                why = "model.mask_release" if self.every_feature else "features"
                raise ConfigError(
                    f'{where}: uses "{column}", which holders protect ({why}), and {what} would tell of it. '
                    f"Leave it out{remedy}."
                )


def check_no_leak(name: str, used: Sequence[str], rule_columns: Sequence[str], target: str) -> None:
    """Raises ConfigError where a derived feature would be made of the label, or of what tells public rows from private."""
    for column in used:
        if column == target or column in rule_columns:
            what = "the target" if column == target else "a column of the rule dataset.public"
            raise ConfigError(
                f'dataset.derive.{name}: uses "{column}", {what}: no feature may be made of it.'
            )
