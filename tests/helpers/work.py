"""How much work a call is, counted: clocks say how busy the machine is."""

import sys


def calls_in(action):
    """Calls of functions, Python's and C's, until `action` returns; the same in every run."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count
