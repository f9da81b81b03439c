"""The command line. Every command loads what it needs when it runs, so that ``cuco --help`` stays instant."""

from cuco.cli.main import main

__all__ = ["main"]
