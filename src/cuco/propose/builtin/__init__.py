"""The built-in proposer: writes candidates by construction, with no model.

``exchange`` reads what has to be communicated from the CommGraph, ``config`` turns a directive into the
constants of generated code, ``runtime`` assembles that code, ``rewrite`` puts it into the user's source,
``fusion`` finds which thread blocks complete which bytes, and ``proposer`` is the ``Proposer`` on top of
them."""

from cuco.propose.builtin.proposer import BuiltinProposer

__all__ = ["BuiltinProposer"]
