"""`privfield` and `python -m privfield`: the command line."""

import sys

_INTERRUPTED = 130  # as in cli/terminal/exit_codes.py, which is not loaded yet


def run() -> int:
    """The command line; Ctrl-C while it is being loaded ends it in one sentence, too."""
    try:
        from privfield.cli import main
    except KeyboardInterrupt:
        print("privfield: interrupted; no file was written.", file=sys.stderr)
        return _INTERRUPTED
    return main()


if __name__ == "__main__":
    sys.exit(run())
