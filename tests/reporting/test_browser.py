"""The report in a real browser: Debian's chromium and chromium-driver, driven headless."""

import base64
import csv
import io
import json
import re
import time
from contextlib import contextmanager

import numpy as np
import pytest

import privfield as pf
from privfield.reporting import write_report


@pytest.fixture(scope="module")
def report(learner, tmp_path_factory):
    return write_report(learner.model_, tmp_path_factory.mktemp("report") / "r.html")


@pytest.fixture
def page(browser, report):
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(report.as_uri())
    assert browser.execute_script("return document.readyState") == "complete"
    yield browser
    assert browser.get_log("browser") == []  # no error, warning or refused request


def run(page, script, *arguments):
    return page.execute_script(script, *arguments)


def text(page, name):
    return run(page, "return document.getElementById(arguments[0]).textContent", name)


def column(page, key):
    return run(
        page,
        "return [...document.querySelectorAll('#edges tbody tr')].map(r => "
        "JSON.parse(document.getElementById('data').textContent).edges.rows[r.dataset.n]"
        "[arguments[0]])",
        key,
    )


def keys(page, *names):
    for name in names:
        page.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "keyDown", "key": name})
        page.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "keyUp", "key": name})


def point(page, x, y):
    page.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})


def prefer(page, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})


@contextmanager
def phone(page):
    """400 pixels wide."""
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        yield
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def ink(page):
    """How many pixels of the network's canvases are painted."""
    return run(
        page,
        """let n = 0;
        for (const c of document.querySelectorAll('#network canvas')) {
          if (!c.width) continue;
          const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
          for (let i = 3; i < d.length; i += 4) n += d[i] > 0;
        } return n""",
    )


def test_the_network_draws(page):
    assert ink(page) > 5000
    assert run(page, "return privfieldNetwork.nodes().length") == 6


def test_nothing_is_asked_of_the_outside(page, report):
    """Every request that the page makes is for the file itself, or made from it (blob, data)."""
    asked = []
    for entry in page.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.append(message["params"]["request"]["url"])
    own = (report.as_uri(), "data:", "blob:")
    assert asked and all(url.startswith(own) for url in asked)


def test_pointing_at_an_edge_shows_its_interval(page):
    where = run(
        page,
        """document.getElementById('h-network').scrollIntoView();
        const box = document.getElementById('network').getBoundingClientRect();
        const at = privfieldNetwork.getElementById('e0').renderedMidpoint();
        return [box.x + at.x, box.y + at.y]""",
    )
    point(page, 5, 5)
    point(page, *where)
    wanted = run(page, "return privfieldNetwork.getElementById('e0').data('text')")
    assert "95% interval" in wanted and text(page, "network-info") == wanted
    tip = run(page, "const t = document.getElementById('tip'); return [t.hidden, t.textContent]")
    assert tip == [False, wanted]
    point(page, 5, 5)
    assert run(page, "return document.getElementById('tip').hidden")
    assert "Point at an edge" in text(page, "network-info")


def test_keys_walk_along_the_edges(page):
    run(page, "document.getElementById('network').focus()")
    seen = []
    for _ in range(3):
        keys(page, "ArrowRight")
        seen.append(text(page, "network-info"))
    assert len(set(seen)) == 3 and all("interval" in each for each in seen)
    strengths = run(page, "return JSON.parse(document.getElementById('data').textContent)")
    assert seen == [edge["text"] for edge in strengths["network"]["edges"][:3]]
    keys(page, "ArrowLeft")
    assert text(page, "network-info") == seen[1]
    before = run(page, "return privfieldNetwork.zoom()")
    keys(page, "+")
    assert run(page, "return privfieldNetwork.zoom()") > before
    keys(page, "Escape")
    assert "Point at an edge" in text(page, "network-info")


def test_verdicts_can_be_hidden(page):
    shown = "return privfieldNetwork.edges().filter(e => e.style('display') !== 'none').length"
    before = run(page, shown)
    run(page, "document.querySelector('input[data-status=clear]').click()")
    after = run(page, shown)
    clear = run(page, "return privfieldNetwork.edges('.clear').length")
    assert clear > 0 and after == before - clear


def test_the_layout_is_the_same_after_a_reload(page):
    places = "return privfieldNetwork.nodes().map(n => [n.position('x'), n.position('y')])"
    before = run(page, places)
    page.refresh()
    assert run(page, places) == before


def test_the_table_sorts_by_mouse_and_key(page):
    button = "document.querySelector('#edges button[data-key=\"{}\"]')"
    run(page, button.format(3) + ".click()")
    low = column(page, 3)
    assert low == sorted(low, reverse=True)
    run(page, button.format(3) + ".click()")
    assert column(page, 3) == sorted(low)
    head = "return document.querySelectorAll('#edges th[aria-sort]').length"
    assert run(page, head) == 1
    run(page, button.format(0) + ".focus()")
    page.switch_to.active_element.send_keys("\ue007")  # Enter
    assert column(page, 0) == sorted(column(page, 0))
    sort = "return document.querySelector('#edges th').getAttribute('aria-sort')"
    assert run(page, sort) == "ascending"


def test_the_table_filters(page):
    run(
        page,
        "const f = document.getElementById('filter'); f.value = 'guilt'; "
        "f.dispatchEvent(new Event('input'))",
    )
    visible = "return [...document.querySelectorAll('#edges tbody tr')].filter(r => !r.hidden)"
    assert run(page, f"{visible}.length") == 5
    assert text(page, "filter-count") == "5 of 15"


def test_the_table_downloads_as_csv(page, tmp_path):
    page.execute_cdp_cmd(
        "Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    records = column(page, 2)
    run(page, "document.getElementById('download').click()")
    for _ in range(200):  # ten seconds
        if (tmp_path / "edges.csv").exists():
            break
        time.sleep(0.05)
    found = list(csv.DictReader(io.StringIO((tmp_path / "edges.csv").read_text("utf-8-sig"))))
    assert [float(row["strength"]) for row in found] == records
    assert {row["verdict"] for row in found} <= {"clear", "uncertain", "absent"}
    assert all(abs(float(row["in_the_model"])) < 2 and float(row["p"]) <= 1 for row in found)
    assert float(found[0]["low"]) <= float(found[0]["strength"]) <= float(found[0]["high"])


def test_a_table_that_is_not_private_says_so_when_it_is_downloaded(browser, symptoms, tmp_path):
    model = symptoms(pf.ApproxDP(1, 1e-6), insecure_seed=1).model_
    browser.get(write_report(model, tmp_path / "r.html").as_uri())
    browser.execute_cdp_cmd(
        "Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    assert "costs no privacy" not in run(browser, "return document.body.textContent")
    run(browser, "document.getElementById('download').click()")
    target = tmp_path / "edges.NOT-PRIVATE.csv"
    for _ in range(200):  # ten seconds
        if target.exists():
            break
        time.sleep(0.05)
    first, head, *rows = target.read_text("utf-8-sig").splitlines()
    assert first == f"# {model.stamp}" and head.startswith("first,second,strength")
    assert len(rows) == 15


def test_the_methods_paragraph_can_be_copied(page):
    run(page, "document.getElementById('copy').click()")
    assert run(page, "return getSelection().toString()").startswith("We estimated")
    assert text(page, "copied")


def test_everything_focusable_is_reached_by_tab(page):
    """From the top: skip link, network, table heads, filter, download, copy; nothing is a trap."""
    seen = []
    for _ in range(40):
        keys_down = {"type": "keyDown", "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}
        page.execute_cdp_cmd("Input.dispatchKeyEvent", keys_down)
        page.execute_cdp_cmd("Input.dispatchKeyEvent", {**keys_down, "type": "keyUp"})
        seen.append(run(page, "return document.activeElement.id || document.activeElement.tagName"))
    assert {"network", "filter", "download", "copy", "zoom-fit"} <= set(seen)


def test_paper_has_the_picture_but_no_buttons(page):
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = "return getComputedStyle(document.querySelector(arguments[0])).display"
    assert run(page, shown, ".static") != "none" and run(page, shown, ".print-only") == "block"
    assert run(page, shown, "#network") == run(page, shown, ".toolbar") == "none"
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert page.execute_cdp_cmd("Page.printToPDF", {})["data"].startswith("JVBERi0")  # %PDF-


def test_a_narrow_window_needs_no_sideways_scrolling(page):
    page.set_window_size(500, 900)
    try:
        for _ in range(50):  # the window takes a moment to become narrow
            wide = run(page, "return document.documentElement.scrollWidth - innerWidth")
            if wide <= 0 and run(page, "return innerWidth") <= 520:
                break
            time.sleep(0.1)
        assert wide <= 0
    finally:
        page.set_window_size(1200, 1000)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(page, scheme):
    """WCAG 2.1 AA: at least 4.5 between the text and the background that it stands on."""
    prefer(page, scheme)
    worst = run(
        page,
        """const rgb = s => s.match(/[0-9.]+/g).map(Number);
        const light = c => { const [r, g, b] = c.slice(0, 3).map(v => { v /= 255;
          return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
          return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        let worst = 99;
        const all = 'h1,h2,p,td,th,dt,dd,li span,button,label,.mark';
        for (const e of document.querySelectorAll(all)) {
          if (!e.textContent.trim() || !e.offsetParent) continue;
          let b = e, back = [255, 255, 255];
          while (b) { const c = rgb(getComputedStyle(b).backgroundColor);
            if (c.length < 4 || c[3] > 0) { back = c; break; } b = b.parentElement; }
          const x = light(rgb(getComputedStyle(e).color)), y = light(back);
          worst = Math.min(worst, (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05));
        } return worst""",
    )
    prefer(page, "light")
    assert worst >= 4.5


def test_hostile_names_run_nothing(browser, symptoms, tmp_path):
    names = ["</script><script>window.evil=1</script>", "<img src=x onerror='window.evil=2'>", "c"]
    path = write_report(symptoms(names=names).model_, tmp_path / "r.html")
    browser.get(path.as_uri())
    assert run(browser, "return window.evil === undefined")
    assert run(browser, "return privfieldNetwork.nodes().map(n => n.data('name'))") == names
    assert browser.get_log("browser") == []


def test_models_without_a_network(browser, tmp_path):
    chain = pf.ChainModel(["a", "b"], [1, 0], [[0.5, 0.5], [0.25, 0.75]])
    peer = pf.NetworkIsing([[0, 1], [1, 0]], 0.4)
    for model in (chain, peer):
        browser.get(write_report(model, tmp_path / "r.html").as_uri())
        assert browser.get_log("browser") == []
        run(browser, "document.getElementById('copy').click()")


LABELS = """return privfieldNetwork.nodes().filter(n => !n.hasClass('quiet')).map(n => {
  const only = { includeNodes: false, includeEdges: false, includeOverlays: false };
  const b = n.renderedBoundingBox(only);
  return [b.x1, b.y1, b.x2, b.y2, parseFloat(n.style('font-size')) * privfieldNetwork.zoom()]; })"""

SPREAD = """const at = privfieldNetwork.nodes().map(n => n.renderedPosition());
return ['x', 'y'].map(k => Math.max(...at.map(p => p[k])) - Math.min(...at.map(p => p[k])))"""


@pytest.mark.parametrize("count", [6, 50])
def test_labels_are_legible_on_a_phone(browser, tmp_path, count):
    """At least 12 pixels high, none on another, none outside the picture, which the nodes fill."""
    weights = np.zeros((count, count))
    for i in range(count - 1):
        weights[i, i + 1] = weights[i + 1, i] = 0.5
    names = [f"a longer name of item {i}" for i in range(count)]
    model = pf.IsingModel(weights, np.zeros(count), names=names)
    with phone(browser):
        browser.get(write_report(model, tmp_path / "r.html").as_uri())
        found = run(browser, LABELS)
        wide = run(browser, "return document.documentElement.scrollWidth")
        box = run(browser, "return [privfieldNetwork.width(), privfieldNetwork.height()]")
        spread = run(browser, SPREAD)
    assert wide <= 400 and len(found) >= min(count, 8)
    assert max(spread[0] / box[0], spread[1] / box[1]) > 0.75
    for number, (x1, y1, x2, y2, size) in enumerate(found):
        assert size >= 11.9
        assert x1 >= -2 and y1 >= -2 and x2 <= box[0] + 2 and y2 <= box[1] + 2
        for a1, b1, a2, b2, _ in found[:number]:
            assert min(x2, a2) - max(x1, a1) < 2 or min(y2, b2) - max(y1, b1) < 2


MIXED = {
    **{f"symptom {i}": ["no", "yes"] for i in range(7)},
    "age": pf.Bins([0, 18, 40, 65, 120]),
    "region of birth as it stands in the passport": ["north", "east", "south", "west", "abroad"],
    "education": ["none", "primary", "secondary", "degree"],
    "job": ["none", "part", "full"],
    "smoker": ["never", "former", "current"],
    "visits": pf.Bins([0, 1, 3, 10, 50]),
    "alcohol": pf.Ordered(["never", "monthly", "weekly", "daily"]),
}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Fourteen variables that all go together."""
    rng = np.random.default_rng(1)
    schema = pf.Schema(MIXED)
    people = rng.normal(size=(4000, 1))
    draws = people + rng.normal(size=(4000, len(schema)))
    ranks = draws.argsort(axis=0).argsort(axis=0)
    codes = ranks * np.array(schema.shape) // 4000
    learner = pf.MarginalLearner(pf.ApproxDP(2, 1e-6), schema=schema)
    model = learner.fit(codes.astype(np.uint8)).model_
    return write_report(model, tmp_path_factory.mktemp("mixed") / "r.html")


@pytest.mark.parametrize(("width", "height"), [(8.27, 11.69), (8.5, 11)], ids=["A4", "letter"])
def test_fourteen_mixed_variables_fit_on_five_pages(browser, mixed, width, height):
    browser.get(mixed.as_uri())
    paper = {"paperWidth": width, "paperHeight": height}
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", paper)["data"])
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 5


def test_tables_that_do_not_fit_on_a_phone_say_so(browser, mixed):
    """Shares with their intervals fit in 400 pixels; what does not fit asks to be scrolled."""
    with phone(browser):
        browser.get(mixed.as_uri())
        hint = "return getComputedStyle(arguments[0].querySelector('caption'), '::after').content"
        parts = browser.find_elements("class name", "scroll")
        assert len(parts) >= 4
        for part in parts:
            over = run(browser, "return arguments[0].scrollWidth - arguments[0].clientWidth", part)
            assert ("scroll sideways" in run(browser, hint, part)) == (over > 1)
            caption = part.find_element("tag name", "caption")
            assert run(browser, "return arguments[0].getBoundingClientRect().right", caption) <= 400
            if part.find_elements("css selector", "table.bars"):
                assert over <= 1


def test_rare_levels_are_folded(browser, tmp_path):
    schema = pf.Schema({"sex": ["f", "m"], "town": 40})
    model = pf.MarkovRandomField(schema, [("sex", "town")], [np.zeros((2, 40))])
    browser.get(write_report(model, tmp_path / "r.html").as_uri())
    seen = """return [...document.querySelectorAll('.bars tbody:last-of-type tr')].filter(
      r => r.offsetParent && !r.classList.contains('unfold-row')).length"""
    assert run(browser, seen) == 8
    run(browser, "document.querySelector('.unfold').click()")
    assert run(browser, seen) == 40
    assert run(browser, "return document.querySelector('.unfold').ariaExpanded") == "true"
