"""`python -m privfield`: the command line."""

import sys

from privfield.cli import main

if __name__ == "__main__":
    sys.exit(main())
