"""Quick fits against tables without noise."""

import numpy as np

import privfield as pf
from privfield.estimation.tables.running_fit import RunningFit


def test_a_running_fit_reproduces_tables_without_noise():
    schema = pf.Schema({"a": 3, "b": 2, "c": 4})
    rng = np.random.default_rng(1)
    joint = rng.dirichlet(np.ones(24)).reshape(3, 2, 4) * 1e6
    tables = [joint.sum(axis=2), joint.sum(axis=0)]
    both = [("a", "b"), ("b", "c")]
    fit = RunningFit(schema, 1e8)
    for count in (1, 2):  # the second starts from the first
        given = pf.Measurements.from_tables(
            schema, both[:count], tables[:count], noise="gaussian", scale=1e-3, total=1e6
        )
        fit.update(given)
    found = fit.predict([(0, 1), (1, 2), (0, 2)])
    np.testing.assert_allclose(found[0, 1] * 1e6, tables[0], atol=300)
    np.testing.assert_allclose(found[1, 2] * 1e6, tables[1], atol=300)
    given_b = tables[0][:, :, None] * tables[1][None] / tables[0].sum(axis=0)[None, :, None]
    np.testing.assert_allclose(found[0, 2] * 1e6, given_b.sum(axis=1), atol=600)
    assert fit.total == 1e6
