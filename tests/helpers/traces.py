"""What everybody may see of a release: the same on all neighbouring data."""

import json

import privfield as pf
from privfield.files import unpack

CHARGED = ("job", "what", "cost", "adjacency", "unit", "version")


def public_trace(release, kind, folder, capfd, caplog, *, budget=None, adjacency="replace-one"):
    """Everything but the noisy numbers. `release` takes what `Terms` take, and measures."""
    folder.mkdir(exist_ok=True)
    ledger = pf.Ledger(folder / "l", total=budget or pf.PureDP(10), adjacency=adjacency)
    news = []
    released = release(adjacency=adjacency, ledger=ledger, job="j", progress=news.append)
    header, arrays = unpack(kind, released.to_bytes(), "released")
    (charge,) = ledger.charges()
    printed = capfd.readouterr()
    return {
        "header": json.dumps(header),
        "arrays": [(name, array.shape, str(array.dtype)) for name, array in arrays.items()],
        "news": news,
        "charge": [getattr(charge, name) for name in CHARGED],
        "printed": (printed.out, printed.err, caplog.text),
        "repr": repr(released),
        "files": sorted(path.name for path in folder.iterdir()),
    }
