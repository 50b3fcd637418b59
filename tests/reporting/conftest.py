"""A fitted model of symptoms, and a real browser: Debian's chromium and chromium-driver."""

import shutil

import numpy as np
import pytest

import privfield as pf
from privfield.learners.base import attach_card

NAMES = ["low mood", "poor sleep", "fatigue", "worry", "guilt", "appetite"]


def fit_symptoms(budget=None, insecure_seed=None, names=NAMES, rows=3000):
    """A learner fitted to made-up patients: a chain of symptoms with one negative link."""
    weights = np.zeros((len(names), len(names)))
    for i in range(len(names) - 1):
        weights[i, i + 1] = weights[i + 1, i] = -0.5 if i == 2 else 0.5
    truth = pf.IsingModel(weights, np.full(len(names), -0.2))
    data = (truth.sample(rows, np.random.default_rng(1), method="independent") > 0).astype(np.uint8)
    learner = pf.MarginalLearner(
        pf.ApproxDP(1, 1e-6) if budget is None else budget,
        schema=pf.Schema({name: ["no", "yes"] for name in names}),
        insecure_seed=insecure_seed,
    ).fit(data)
    attach_card(learner)
    return learner


@pytest.fixture(scope="session")
def symptoms():
    """Makes such learners."""
    return fit_symptoms


@pytest.fixture(scope="session")
def learner():
    return fit_symptoms()


FLAGS = [  # no sandbox: tests may run as root; the rest keeps the browser from calling home
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-quic", "--no-first-run", "--window-size=1200,1000"),
]


def pytest_collection_modifyitems(items):
    """Pages are looked at on one worker: one browser, and one fit for each kind of page."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no browser: install Debian's packages chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in FLAGS:
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('browser')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield found
    found.quit()
