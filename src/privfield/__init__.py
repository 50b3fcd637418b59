"""privfield: graphical models from sensitive data under differential privacy."""

from privfield._version import __version__ as __version__
