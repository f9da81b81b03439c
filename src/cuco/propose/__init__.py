"""Proposers: who writes candidates. They never judge them (``cuco.verify`` does)."""
