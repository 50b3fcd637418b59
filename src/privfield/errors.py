"""The errors a user can meet.

Texts name the parameter, what is legal and what came. They never hold a value of a private record.
"""


class InputError(ValueError):
    """Something public is wrong: a file, a name, a parameter, a schema."""


class BudgetRefused(ValueError):
    """A ledger refused a charge: the budget that is left does not cover it.

    `hint` is the end of its text that holds in any wording: how δ came to be short.
    """

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(f"{text} {hint}".rstrip())
        self.hint = hint
