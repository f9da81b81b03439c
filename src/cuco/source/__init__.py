"""Reading CUDA and NCCL source: the CommGraph, evolve blocks and patches, edits, lint."""

from cuco.source.analyze import analyze
from cuco.source.graph import Buffer, CommGraph, Edge, Kernel, Launch, Parameter
from cuco.source.linting import LintFinding, lint

__all__ = ["Buffer", "CommGraph", "Edge", "Kernel", "Launch", "LintFinding", "Parameter", "analyze", "lint"]
