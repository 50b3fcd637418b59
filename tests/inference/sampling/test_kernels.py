"""Parts of the compiled loops on their own."""

import subprocess
import sys

import numpy as np
import pytest


def test_random_words_are_the_published_ones():
    # first outputs of xoshiro256++ from the state 1, 2, 3, 4, as in the reference code
    from privfield.kernels.xoshiro import next_word

    state = tuple(np.uint64(k) for k in (1, 2, 3, 4))
    words = []
    for _ in range(5):
        word, *state = next_word(*state)
        words.append(int(word))
    assert words == [
        41943041,
        58720359,
        3588806011781223,
        3591011842654386,
        9228616714210784205,
    ]


@pytest.mark.parametrize("spread", [0.01, 1.0, 10.0, 1e4, 1e300])
def test_bracketed_logistic_decides_like_the_plain_one(spread):
    from privfield.inference.sampling.glauber import _bracket
    from privfield.inference.sampling.glauber_kernels import is_up

    bracket = _bracket()
    assert (np.diff(bracket.astype(float)) >= 0).all()
    rng = np.random.default_rng(1)
    locals_ = rng.normal(0, spread, 3000)
    with np.errstate(over="ignore"):
        up = 1 / (1 + np.exp(-2 * locals_))
    # words around the edge, where the table cannot decide, and anywhere
    near = np.clip(up + rng.normal(0, 0.01, 3000), 0, 1 - 1e-15)
    for share in (near, rng.random(3000)):
        words = (share * 2.0**64).astype(np.uint64)
        far = np.abs(share - up) > 1e-12
        decided = np.array(
            [is_up(word, local, bracket) for word, local in zip(words, locals_, strict=True)]
        )
        np.testing.assert_array_equal(decided[far], (share < up)[far])


def test_numba_is_loaded_only_when_drawing():
    code = (
        "import sys, privfield.inference.sampling as s, numpy as np\n"
        "assert 'numba' not in sys.modules\n"
        "s.sample_network(np.zeros((2, 2)), n=4)\n"
        "assert 'numba' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
