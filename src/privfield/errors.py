"""The errors a user can meet.

Texts name the parameter, what is legal and what came. They never hold a value of a private record.
"""


class InputError(ValueError):
    """Something public is wrong: a file, a name, a parameter, a schema."""


class BudgetRefused(ValueError):
    """A ledger refused a charge: the budget that is left does not cover it."""
