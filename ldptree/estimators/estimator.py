"""The base of the estimators. A fit plays the holders on this machine, and keeps what everybody may see.

Either some rows are public (`PublicRowsEstimator`), or some features of each row (`PublicFeaturesEstimator`).
"""

from __future__ import annotations

import textwrap
from abc import abstractmethod
from dataclasses import dataclass, field, make_dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ldptree.coins import Words
from ldptree.errors import ConfigError, DataError
from ldptree.estimators.holders import SplitRows, encoding_of
from ldptree.families.family import RoundsFamily, converse, respond_in_rounds
from ldptree.families.settings import FamilySettings
from ldptree.limits import check_epsilon, is_number
from ldptree.plain_text import escape_html
from ldptree.protocol.ledger import Charge, Ledger, Names
from ldptree.protocol.question import AnsweredQuestion, PublicView, Question
from ldptree.settings import Read, Settings, texts_of
from ldptree.validation import (
    check_aligned,
    check_class_labels,
    check_seed,
    checked_mask,
    classes_of,
    one_of,
    validated,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]


S = TypeVar("S", bound=Settings)
LINE = 116


def _read_seed(random_state: Any) -> Any:
    check_seed(random_state)
    return random_state


@dataclass(frozen=True, kw_only=True)
class Budget(Settings):
    """The parameters of a fit that come first and last in every estimator."""

    epsilon: Annotated[float, Read(check_epsilon)] = 1.0
    """The budget of each private row, above 0 and at most 64."""


@dataclass(frozen=True, kw_only=True)
class Coins(Settings):
    """The coins of a fit."""

    random_state: Annotated[Any, Read(_read_seed)] = None
    """None draws the holders' coins from the operating system. A number makes a simulation that can be repeated, and protects
    nobody.
    """


class Estimator(BaseEstimator):  # type: ignore[misc]
    """A scikit-learn estimator that sees private rows through their reports only.

    A subclass names the settings that its parameters are, as in `class Mine(Estimator, settings=(MySettings,), without=("x",))`.
    Its `__init__` and the part of its docstring that says "{parameters}" are made of them.
    """

    _settings: ClassVar[tuple[type[Settings], ...]] = (Budget, Coins)
    _family_settings: ClassVar[type[FamilySettings]]
    _is_numeric: ClassVar[bool]
    """True if labels are numbers, not classes."""

    epsilon: Any
    feature_range: Any
    random_state: Any

    classes_: NDArray[Any]
    model_: Any
    ledger_: Ledger

    _learned: ClassVar[str] = "model_"
    """The attribute that a finished fit has set."""

    def __init_subclass__(
        cls, settings: tuple[type[Settings], ...] = (), without: tuple[str, ...] = (), **others: Any
    ) -> None:
        super().__init_subclass__(**others)
        if settings:
            _take_parameters(cls, (Budget, *settings, Coins), without)
        inherited = getattr(cls, "fit", None)
        if isinstance(inherited, FunctionType) and "fit" not in vars(cls):
            # Of a wrong argument Python's own error names the class that a function was written in, which nobody has called.
            cls.fit = _named_anew(inherited, f"{cls.__qualname__}.fit")

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there is a model. A refused fit has left classes and columns, but no model."""
        return hasattr(self, self._learned)

    def __str__(self) -> str:
        """Its parameters, and once fitted what was learned."""
        return f"{self!r}\n{self.model_}" if self.__sklearn_is_fitted__() else repr(self)

    def _html_repr(self) -> str:
        """Return scikit-learn's table of parameters until it is fitted, then what was learned, for a notebook."""
        if not self.__sklearn_is_fitted__():
            return str(super()._html_repr())
        return f"<p>{escape_html(repr(self))}</p>{self.model_._repr_html_()}"

    def _read(self, of: type[S]) -> S:
        """Return these of the parameters, checked. Raises ConfigError."""
        return of(**{name: getattr(self, name) for name in of.names() if hasattr(self, name)})

    def _check_parameters(self) -> None:
        """Raise ConfigError for what can be wrong before a row is looked at."""
        for of in self._settings:
            settings = self._read(of)
            if isinstance(settings, FamilySettings):
                self._check_devices(settings.DEVICES)

    def _check_devices(self, devices: Mapping[str, tuple[str, str]]) -> None:
        """Raise ConfigError where a report that gives holders away is asked of anybody but a simulation's."""
        for name, (device, instead) in devices.items():
            if getattr(self, name) == device and self.random_state is None:
                raise ConfigError(
                    f'{name} = "{device}" is a simulation device, its floating-point noise gives holders away; use '
                    f'"{instead}", or set random_state'
                )

    def _begin_fit(self) -> None:
        """Drop the model of an earlier fit and check parameters, so that a refused fit leaves no stale classes.

        Raises:
            ConfigError: a parameter is wrong.
        """
        self.__dict__.pop(self._learned, None)
        self._check_parameters()

    def _read_fit(self, X: ArrayLike, y: ArrayLike) -> tuple[Floats, NDArray[Any]]:
        """Checked rows [n, d] and labels [n] of a fit."""
        rows: Floats
        labels: NDArray[Any]
        rows, labels = validated(self, X, y, dtype=np.float64, y_numeric=self._is_numeric)
        return rows, labels

    def _read_rows(self, X: ArrayLike, **settings: Any) -> Floats:
        """Checked rows [n, d] of a prediction."""
        check_is_fitted(self)
        rows: Floats = validated(self, X, dtype=np.float64, reset=False, **settings)
        return rows

    def _draw_seeds(self) -> Ints | None:
        """The four seeds of a simulation; None for the operating system's coins."""
        if self.random_state is None:
            return None
        seeds: Ints = check_random_state(self.random_state).randint(2**31, size=4)
        return seeds

    @property
    def _column_names(self) -> NDArray[Any] | None:
        """The names of the columns of X, where it had any."""
        return getattr(self, "feature_names_in_", None)


def _take_parameters(
    cls: type[Estimator], settings: tuple[type[Settings], ...], without: tuple[str, ...]
) -> None:
    """Give an estimator the fields of settings as its parameters: in its `__init__`, and in its docstring."""
    defaults = {
        name: value for of in settings for name, value in of.defaults().items() if name not in without
    }
    texts = {name: text for of in settings for name, text in texts_of(of).items()}
    parameters = [
        (name, Any, field(default=default, kw_only=name != "epsilon")) for name, default in defaults.items()
    ]
    cls._settings = settings
    cls._family_settings = next(of for of in settings if issubclass(of, FamilySettings))
    cls.__init__ = make_dataclass(cls.__qualname__, parameters).__init__  # type: ignore[method-assign,misc]
    if cls.__doc__ is not None:
        lines = [
            textwrap.fill(
                f"{name}: {texts.get(name, '')}", LINE, initial_indent=" " * 8, subsequent_indent=" " * 12
            )
            for name in defaults
        ]
        cls.__doc__ = cls.__doc__.replace("        {parameters}", "\n".join(lines))


def _named_anew(function: FunctionType, qualname: str) -> FunctionType:
    """The same function under another qualified name."""
    copy = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__qualname__, copy.__annotations__ = qualname, function.__annotations__
    return copy


class PublicRowsEstimator(Estimator):
    """Some rows are public; every other row sends one report."""

    def fit(self, X: ArrayLike, y: ArrayLike, public: ArrayLike | None = None) -> Self:
        """Learn from public rows, ask every private row once, and fit the model.

        Args:
            X: numbers [n, d], a numpy array or a pandas or polars frame.
            y: labels [n].
            public: bool [n], which rows are public; None: all are private.

        Raises:
            ConfigError: a parameter is wrong (a ValueError).
            DataError: the rows are (a ValueError).
        """
        self._begin_fit()
        rows, labels = self._read_fit(X, y)
        is_public = checked_mask(public, len(labels), X)
        if is_public.all():
            raise DataError(
                "public: every row is public, so nobody is left to report; mark fewer rows, or take an estimator without privacy"
            )
        codes, label = self._read_labels(labels, is_public)
        seeds = self._draw_seeds()
        encoding = encoding_of(rows[is_public], self._column_names, self.feature_range)
        self.ledger_ = Ledger(cap=float(self.epsilon))
        self._learn(
            SplitRows(
                encoding=encoding,
                public_rows=rows[is_public],
                public_labels=codes[is_public],
                private_rows=rows[~is_public],
                private_labels=codes[~is_public],
                label=label,
                ledger=self.ledger_,
            ),
            seeds,
        )
        return self

    @abstractmethod
    def _read_labels(self, labels: NDArray[Any], is_public: Mask) -> tuple[NDArray[Any], tuple[Any, ...]]:
        """Class indices or numbers [n]; and the declared classes, or what is known of a number's range."""

    @abstractmethod
    def _learn(self, rows: SplitRows, seeds: Ints | None) -> None:
        """Hold the conversation, and keep what it left."""

    def _read_classes(
        self, labels: NDArray[Any], is_public: Mask, declared: Any = None
    ) -> tuple[Ints, tuple[Any, ...]]:
        """Class indices [n], -1 for a label that is not declared; and the classes, by default the labels of public rows.

        Without public rows they are the labels of all rows, which are then declared by passing them.
        """
        if declared is None:
            has_public = bool(is_public.any())
            known = labels[is_public] if has_public else labels
            check_class_labels(known)
            declared = classes_of(known, are_public=has_public)
        self.classes_ = np.asarray(declared)
        places = np.minimum(np.searchsorted(self.classes_, labels), self.classes_.size - 1)
        codes = np.where(self.classes_[places] == labels, places, -1)
        return codes, tuple(v.item() if isinstance(v, np.generic) else v for v in self.classes_)


@dataclass(frozen=True, kw_only=True)
class Shown(Settings):
    """The features that rows show, and their ranges."""

    private_features: Any = None
    """Columns that everybody protects, by number or name; [] protects the label alone. None: `protects` says it (of HistOfTree
    without it all of them, which is plain LDP).
    """
    feature_range: Any = None
    """(low, high), numbers or one for each feature, to which features are scaled. None: (0, 1), or of public_features the range
    of the values that are shown, where there are any.
    """


class PublicFeaturesEstimator(Estimator):
    """Some features of each row are public; of the others and the label a row sends reports only."""

    private_features: Any

    def fit(self, X: ArrayLike, y: ArrayLike, protects: ArrayLike | None = None) -> Self:
        """Ask the rows, and fit the model.

        Args:
            X: numbers [n, d], complete rows: a numpy array or a pandas or polars frame.
            y: labels [n].
            protects: bool [n, d], True where a row protects the feature; instead of `private_features`.

        Raises:
            ConfigError: a parameter is wrong, or what is learned would not fit into memory (a ValueError).
            DataError: the rows, the labels or the mask are (a ValueError).
        """
        self._begin_fit()
        rows, labels = self._read_fit(X, y)
        check_aligned("protects", protects, X)
        numbers = self._read_labels(labels)
        mask = self._read_mask(protects, (rows.shape[0], rows.shape[1]))
        seeds = self._draw_seeds()
        family, points = self._prepare(rows, mask, seeds)
        view = self._view(points, mask)
        words = Words.system() if seeds is None else self._seeded_words(seeds)
        self.ledger_ = Ledger(cap=float(self.epsilon))

        def answer(question: Question, holders: Ints) -> NDArray[Any]:
            self.ledger_.spend(
                Charge(
                    question=question.digest,
                    epsilon=question.epsilon,
                    who=Names(holders.astype(np.uint64)),
                    about=question.about,
                )
            )
            return question.randomize(points[holders], numbers[holders], mask[holders], words)

        self.model_, transcript = converse(family, view, respond_in_rounds(view, answer))
        self._keep(family, view, transcript)
        return self

    @abstractmethod
    def _read_labels(self, labels: NDArray[Any]) -> Floats:
        """Labels as numbers [n]."""

    @abstractmethod
    def _read_mask(self, protects: ArrayLike | None, shape: tuple[int, int]) -> Mask:
        """Return which values are protected, bool [n, d]. Raises ConfigError or DataError."""

    @abstractmethod
    def _prepare(self, rows: Floats, mask: Mask, seeds: Ints | None) -> tuple[RoundsFamily[Any], Floats]:
        """Return the family that asks, and the scaled rows [n, d]."""

    def _view(self, points: Floats, mask: Mask) -> PublicView:
        """Return what everybody can see of the scaled rows [n, d]."""
        return PublicView.of(points, mask)

    def _seeded_words(self, seeds: Ints) -> Words:
        """The coins of a simulation."""
        return Words.seeded(np.random.SeedSequence(seeds[1:].tolist()))

    @abstractmethod
    def _keep(self, family: Any, view: PublicView, transcript: list[AnsweredQuestion]) -> None:
        """Keep the published transcript."""

    def _private_columns(self, d: int) -> list[int] | None:
        """The numbers of `private_features`, given by number or name. Raises ConfigError."""
        private, names = self.private_features, self._column_names
        if private is None:
            return None
        if isinstance(private, str) or not np.iterable(private):
            raise ConfigError(
                f"private_features must be a list of columns, got {private!r}; write [{private!r}]"
            )
        known = [] if names is None else [str(name) for name in names]
        columns = []
        for feature in private:
            if isinstance(feature, str):
                if not known:
                    raise ConfigError(
                        f"private_features: {feature!r} is a name, and X has no column names; give numbers"
                    )
                one_of("private_features", feature, known)
                columns.append(known.index(feature))
            elif is_number(feature, whole=True) and 0 <= feature < d:
                columns.append(int(feature))
            else:
                raise ConfigError(
                    f"private_features: {feature!r} is no column; give a name, or a whole number from 0 to {d - 1}"
                )
        return columns
