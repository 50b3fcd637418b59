"""What `fit` says beforehand that it will measure."""

import numpy as np
import pytest

import privfield as pf
from privfield.cli.commands.learners import in_words
from privfield.mechanisms.forecasting.choose import forecast_of
from privfield.mechanisms.forecasting.study import table_study


@pytest.mark.parametrize(
    ("levels", "budget", "told"),
    [
        (3, pf.ZCDP(1), "pairs and small triples that are selected"),
        (3, pf.PureDP(5), "tables of pairs that are selected"),
        (2, pf.ZCDP(1), "tables of pairs that are selected"),
    ],
)
def test_selection_names_triples_where_it_may_look_at_them(levels, budget, told):
    schema = pf.Schema({"a": 2, "b": 2, "c": 2, "d": levels})
    study = table_study(np.zeros((100_000, 4), int), schema, budget)
    assert told in in_words(forecast_of(study, "selection"), study, "learn")
