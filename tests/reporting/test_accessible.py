"""Every kind of page, looked at by axe-core in a real browser: nothing serious or critical."""

from pathlib import Path

import numpy as np
import pytest

import privfield as pf
from privfield.cli import main
from privfield.reporting import write_report

KINDS = ["report", "utility", "compare", "card", "cards", "chain", "peer"]
LOOK = """const done = arguments[0];
axe.run({resultTypes: ['violations']}).then(
  found => done(found.violations.map(each => [each.impact, each.id, each.nodes[0].html])),
  problem => done([['critical', String(problem), '']]))"""


@pytest.fixture(scope="module")
def axe():
    found = pytest.importorskip("axe_core_python")
    return (Path(found.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pages(learner, symptoms, tmp_path_factory):
    place = tmp_path_factory.mktemp("pages")
    learner.model_.save(place / "m.pf")
    symptoms().model_.save(place / "other.pf")
    other = str(place / "other.pf")
    model, card = str(place / "m.pf"), str(place / "card.json")
    lines = [
        ["report", model, "-o", "report.html"],
        ["sample", model, "-n", "500", "-o", "s.csv"],
        ["utility", model, str(place / "s.csv"), "-o", "utility.html"],
        ["compare", model, other, "-o", "compare.html"],
        ["export", model, "--to", "card", "-o", "card.json"],
        ["compare", card, card, "-o", "cards.html"],
    ]
    for *line, name in lines:
        assert main([*line, str(place / name)]) == 0
    stay = np.diag(np.linspace(0, 0.95, 20))  # every shade of the heat map
    chain = pf.ChainModel(range(20), np.eye(20)[0], stay + np.roll(np.eye(20) - stay, 1, axis=1))
    write_report(chain, place / "chain.html")
    write_report(pf.NetworkIsing([[0, 1], [1, 0]], 0.4), place / "peer.html")
    return place


@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing_serious(axe, browser, pages, kind):
    browser.set_script_timeout(60)
    serious = []
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
        browser.get((pages / f"{kind}.html").as_uri())
        browser.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})  # past the page's policy
        found = browser.execute_async_script(LOOK)
        serious += [[scheme, *each] for each in found if each[0] in ("serious", "critical")]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    assert serious == []


def test_no_verdict_of_a_card_is_broken_on_a_phone(browser, pages):
    """400 pixels wide: "answered" stands on one line."""
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get((pages / "card.html").as_uri())
    lines = browser.execute_script(
        """return [...document.querySelectorAll('td')].filter(c => c.textContent === 'answered')
        .map(cell => { const r = document.createRange(); r.selectNodeContents(cell);
          return r.getClientRects().length; })"""
    )
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert len(lines) > 10 and set(lines) == {1}


def test_differences_are_whole_on_a_phone(browser, pages):
    """400 pixels wide: the column of differences ends where the table does, or before."""
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get((pages / "compare.html").as_uri())
    ends = browser.execute_script(
        """const box = document.querySelector('.edges').closest('.scroll').getBoundingClientRect();
        const cells = document.querySelectorAll('.edges tr > :nth-child(4)');
        return [box.right, ...[...cells].map(cell => cell.getBoundingClientRect().right)]"""
    )
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert len(ends) > 5 and max(ends[1:]) <= ends[0]


def test_axe_sees_what_is_wrong(axe, browser, tmp_path):
    """The look is a real one: grey on grey, and a picture without words."""
    (tmp_path / "bad.html").write_text(
        "<html lang=en><title>x</title><main><h1>x</h1>"
        "<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>"
        "<p style='color:#999;background:#aaa'>hardly to be read</p></main></html>"
    )
    browser.get((tmp_path / "bad.html").as_uri())
    browser.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})
    found = {name for impact, name, _ in browser.execute_async_script(LOOK)}
    assert {"color-contrast", "image-alt"} <= found
