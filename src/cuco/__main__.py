"""``python -m cuco``."""

from cuco.cli.main import entry

entry()
