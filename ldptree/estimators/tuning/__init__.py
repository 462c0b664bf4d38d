"""What a holder who never trains is asked about candidate models. One question, one file; one line here."""

from ldptree.estimators.tuning.all_errors import AllErrors
from ldptree.estimators.tuning.one_model import Difference, OneModel
from ldptree.estimators.tuning.question import Estimates, ValidationQuestion

QUESTIONS: dict[str, type[ValidationQuestion]] = {
    "difference": Difference,
    "one-model": OneModel,
    "laplace": AllErrors,
}

__all__ = ["QUESTIONS", "AllErrors", "Difference", "Estimates", "OneModel", "ValidationQuestion"]
