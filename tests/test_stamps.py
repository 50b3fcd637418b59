"""Whatever is made of a stamped model says that it is NOT PRIVATE; of others nothing does."""

import copy
import json
from dataclasses import is_dataclass, replace

import networkx as nx
import numpy as np
import pytest

import privfield as pf
from privfield.cli import main
from privfield.reporting.utility import utility
from privfield.stamps import note_beside

NAMES = ("low mood", "sleep", "worry")


def fit(**terms):
    rng = np.random.default_rng(3)
    first = rng.random(400) < 0.5
    second = np.where(rng.random(400) < 0.8, first, rng.random(400) < 0.5)
    rows = np.stack([first, second, rng.random(400) < 0.3], axis=1).astype(np.uint8)
    schema = pf.Schema({name: ["no", "yes"] for name in NAMES})
    budget = terms.pop("budget", pf.ZCDP(1))
    cliques = [NAMES[:2], NAMES[1:], NAMES[::2]]
    return pf.MarginalLearner(budget, schema=schema, cliques=cliques, **terms).fit(rows)


@pytest.fixture(scope="module")
def private():
    return fit().model_


@pytest.fixture(scope="module", params=["seeded", "without noise"])
def learner(request):
    return fit(insecure_seed=1) if request.param == "seeded" else fit(budget=pf.NON_PRIVATE)


@pytest.fixture(scope="module")
def model(learner):
    assert learner.model_.stamp.startswith("NOT PRIVATE")
    return learner.model_


def made_of(model, private):
    """Every value of ours that is made of a model, by how it is asked for."""
    asked = model.ask("P(sleep=yes | worry=no)")
    compared = pf.compare(model, private) if model is not private else None
    drawn = pf.bootstrap(model.measurements, replicates=20, rng=np.random.default_rng(0))
    yield from {
        "edges": model.edges(),
        "some edges": model.edges()[:1],
        "answer": asked,
        "centrality": model.centrality(),
        "some centrality": model.centrality()[1:],
        "interval": drawn.probability({"sleep": "yes"}),
        "intervals": drawn.marginal(["sleep", "worry"]),
        "log odds": drawn.log_odds_ratio("sleep", "worry"),
        **({} if compared is None else {"comparison": compared, "differences": compared.edges()}),
    }.items()


def frames_of(model, private):
    yield from {
        "marginal": model.marginal(["sleep"], labels=True),
        "pair": model.marginal(["sleep", "worry"], labels=True),
        "rows": model.sample(5, labels=True),
    }.items()
    for name, value in made_of(model, private):
        if hasattr(value, "to_pandas"):
            yield name, value.to_pandas()


def test_results_say_it(model, private):
    for name, value in made_of(model, private):
        assert value.stamp == model.stamp, name
        assert repr(value).startswith(model.stamp), name
        assert repr(value).count("NOT PRIVATE") == 1, name
        assert "NOT PRIVATE" in value._repr_html_(), name
    for name, frame in frames_of(model, private):
        assert frame.attrs == {"stamp": model.stamp}, name
        assert "stamp" not in frame, name
    for draw in (*model.draws(2), model.condition({"sleep": "yes"}), pf.pool([model, private])):
        assert draw.stamp == model.stamp
    assert utility(model, model.sample(50)).summary()["stamp"] == model.stamp


def test_single_rows_say_it(model, private):
    edges = model.edges()
    for row in (*edges, edges[0], *edges[:1], *sorted(edges, key=lambda row: row.first)):
        assert row.stamp == model.stamp
        assert repr(row).startswith(f"{model.stamp}.\nEdgeInterval(first='")
    assert [row.stamp for row in private.edges()] == [None] * len(private.edges())
    assert repr(private.edges()[0]).startswith("EdgeInterval(first='")


def test_copies_say_it(model, private):
    """As a filter or a rounding makes them; without a stamp a copy has none either."""
    for source in (model, private):
        edges = source.edges()
        for value in (edges.rows[0], *(v for _, v in made_of(source, private))):
            if is_dataclass(value):
                assert replace(value).stamp == source.stamp
                assert copy.deepcopy(value).stamp == source.stamp
        rounded = replace(edges[0], estimate=round(edges[0].estimate, 1))
        assert rounded.stamp == source.stamp and rounded.estimate != edges[0].estimate
        assert replace(source.ask("P(sleep=yes)"), note="mine").stamp == source.stamp


def test_graphs_say_it(learner, model):
    own = [model.graph(), model.to_ising().graph(), learner.graph_]
    own.append(pf.OrdinalModel(model.schema, np.zeros((3, 3)), stamp=model.stamp).graph())
    own.append(pf.NetworkIsing([[0, 1], [1, 0]], beta=1, stamp=model.stamp).graph())
    assert [graph.graph["stamp"] for graph in own] == [model.stamp] * 5


def test_peer_effects_say_it():
    ring = nx.cycle_graph(12)
    outcomes = dict.fromkeys(ring, 1)
    common = {"budget": pf.PureDP(5), "guess": 0.5}
    for terms in ({"insecure_seed": 1}, {"calibration": "as-printed"}):
        peer = pf.PeerEffect(**common, **terms).fit(ring, outcomes)
        assert peer.estimate_.stamp == peer.stamp_ is not None
        assert replace(peer.estimate_, level=0.5).stamp == peer.stamp_
        assert repr(peer.estimate_).startswith(peer.stamp_)
    assert pf.PeerEffect(**common).fit(ring, outcomes).estimate_.stamp is None


def test_private_results_say_nothing(private):
    for name, value in made_of(private, private):
        assert value.stamp is None and "NOT PRIVATE" not in repr(value), name
    for name, frame in frames_of(private, private):
        assert frame.attrs == {}, name
    assert private.graph().graph == {}


def export(model, folder, to, name):
    model.save(folder / "model.pf")
    target = folder / name
    done = main(["export", str(folder / "model.pf"), "--to", to, "-o", str(target), "--force"])
    assert done == 0
    return target


def test_files_say_it(model, private, tmp_path):
    stamp = model.stamp
    graph = export(model, tmp_path, "graphml", "g.graphml")
    assert nx.read_graphml(graph).graph["stamp"] == stamp
    links = json.loads(export(model, tmp_path, "json", "g.json").read_text())
    assert links["graph"]["stamp"] == stamp
    for name in ("weights.csv", "weights-thresholds.csv"):
        export(model, tmp_path, "qgraph", "weights.csv")
        assert (tmp_path / name).read_text().splitlines()[0] == f"# {stamp}"
        export(private, tmp_path, "qgraph", "weights.csv")
        assert "#" not in (tmp_path / name).read_text()
    central = export(model, tmp_path, "centrality", "c.csv").read_text().splitlines()
    assert central[0] == f"# {stamp}" and central[1].startswith("name,")
    assert f"\n# {stamp}\n" in export(model, tmp_path, "r", "m.R").read_text()


@pytest.mark.parametrize(("to", "name"), [("uai", "m.uai"), ("jasp", "people.csv")])
def test_a_file_without_room_has_a_note_beside_it(model, private, tmp_path, to, name):
    note = tmp_path / f"{name}.NOT-PRIVATE.txt"
    export(model, tmp_path, to, name)
    assert note.read_text() == f"{name}: {model.stamp}.\n"
    export(private, tmp_path, to, name)
    assert not note.exists()


def test_a_note_is_there_before_its_file_and_goes_with_it(tmp_path):
    target, note = tmp_path / "rows.csv", tmp_path / "rows.csv.NOT-PRIVATE.txt"
    with pytest.raises(KeyboardInterrupt), note_beside(target, "NOT PRIVATE: x"):
        assert note.exists()
        raise KeyboardInterrupt
    assert not note.exists()
    with note_beside(target, "NOT PRIVATE: x"):
        target.touch()
    for stamp in (None, "NOT PRIVATE: y"):  # the old file stays, and so does its note
        with pytest.raises(KeyboardInterrupt), note_beside(target, stamp):
            raise KeyboardInterrupt
        assert note.exists()


def test_synthetic_rows_say_it(model, private, tmp_path):
    import pyarrow.parquet as pq

    rows, table = tmp_path / "rows.csv", tmp_path / "rows.parquet"
    note = tmp_path / "rows.csv.NOT-PRIVATE.txt"
    for made, said in ((model, True), (private, False)):
        made.save(tmp_path / "model.pf")
        for target in (rows, table):
            common = ["-n", "20", "-o", str(target), "--force"]
            assert main(["sample", str(tmp_path / "model.pf"), *common]) == 0
        assert note.exists() == said and len(list(tmp_path.glob("*PRIVATE*"))) == said
        assert rows.read_text().splitlines()[0] == ",".join(NAMES)  # plain rows stay plain rows
        about = pq.read_schema(table).metadata or {}
        assert about.get(b"stamp") == (made.stamp.encode() if said else None)
