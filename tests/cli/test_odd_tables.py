"""Odd tables from the command line: a right answer, or a refusal before the charge."""

import json
import random

import pytest

import privfield as pf

VARIABLES = {
    "group": ["a", "b", "c", "nobody has it"],
    "half": ["x", "y"],  # the group determines it
    "coin": ["no", "yes"],
    "same": ["k"],
}


@pytest.fixture
def fit(call, tmp_path):
    def run(n, *options):
        pf.Schema(VARIABLES).write(tmp_path / "s.toml")
        draw = random.Random(n)
        lines = [",".join(VARIABLES)]
        for _ in range(n):
            group = draw.choice("abc")
            lines.append(f"{group},{'y' if group == 'c' else 'x'},{draw.choice(('no', 'yes'))},k")
        (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
        code, out, told = call(
            *("fit", tmp_path / "rows.csv", "--schema", tmp_path / "s.toml", "--yes", "--json"),
            *(*options, "-o", tmp_path / "m.pf"),
        )
        assert code == 0, told
        return json.loads(out), pf.load(tmp_path / "m.pf")

    return run


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("n", [0, 1, 50])
@pytest.mark.filterwarnings("ignore:The noisy total")
def test_hardly_anybody(fit, n, adjacency):
    _, model = fit(n, "--epsilon", "1", "--delta", "1e-6", "--adjacency", adjacency)
    for name, levels in VARIABLES.items():
        shares = model.marginal([name])
        assert shares.shape == (len(levels),) and (shares >= 0).all()
        assert shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("cliques", ["auto", "learn", "all-pairs"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_levels_that_nobody_or_everybody_has_and_a_variable_that_determines_another(
    fit, cliques, adjacency
):
    """ρ = 50: noise is below one person, so that a share is off by 0.01 with a chance below 1e-12.
    A pair with a column of one level is no link."""
    found, model = fit(4_000, "--rho", "50", "--cliques", cliques, "--adjacency", adjacency)
    assert model.marginal(["group"])[3] < 0.01
    joint = model.marginal(["group", "half"])
    assert joint[:2, 0].sum() + joint[2, 1] > 0.98
    assert found["linked_in_model"] <= 3
    assert "same" not in {name for pair in model.graph().edges for name in pair}


@pytest.mark.parametrize(("levels", "cliques"), [(2, "learn"), (2, "auto"), (3, "auto")])
def test_five_thousand_columns_are_refused_at_once(call, tmp_path, levels, cliques):
    schema = pf.Schema({f"v{i}": levels for i in range(5_000)})
    schema.write(tmp_path / "s.toml")
    (tmp_path / "rows.csv").write_text(",".join(schema.names) + "\n")
    code, out, told = call(
        *("fit", tmp_path / "rows.csv", "--schema", tmp_path / "s.toml", "--epsilon", "1"),
        *("--delta", "1e-6", "--cliques", cliques, "--ledger", tmp_path / "l", "--yes"),
        *("-o", tmp_path / "m.pf"),
    )
    assert code == 2 and not out and not (tmp_path / "l").exists()
    assert "5,000 variables have 12,497,500 pairs to choose from; a search takes at most" in told
    assert "those of 1," in told and "Nothing was charged" in told
    assert "This will spend" not in told
