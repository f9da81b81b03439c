"""The timing slice: per kernel a plan of what to execute, or the reason why it must be executed whole.

Rules (design 6): value work is counted and not executed; control flow, synchronisation, atomics, and every
address that is not proven local stay. Counts per basic block equal those of full execution: blocks are
entered as in the full program, only instructions inside them are left out.
"""

from __future__ import annotations

from cuco.testbed.ptx.blocks import Block
from cuco.testbed.ptx.layout import Layout
from cuco.testbed.ptx.model import Function, Module
from cuco.testbed.ptx.slice_flow import Flow
from cuco.testbed.ptx.slice_need import NeedAnalysis, Needs, Refusal
from cuco.testbed.ptx.slice_plan import Plan
from cuco.testbed.ptx.slice_regions import RegionFinder


def slice_function(function: Function, blocks: list[Block], layout: Layout) -> tuple[Plan, Needs]:
    """The plan of one kernel. Raises Refusal."""
    needs = NeedAnalysis(function, blocks, Flow(function, layout)).run()
    plan = Plan(needs.kept, needs.checked, {id(i) for i in needs.control}, needs.spoiled)
    for region in RegionFinder(blocks, plan).find():
        plan.regions[region.header] = region
        plan.inside |= set(region.blocks)
    return plan, needs


def slice_module(
    module: Module, layout: Layout, blocks: dict[str, list[Block]]
) -> tuple[dict[str, Plan], dict[str, tuple[str, tuple[tuple[int, bool], ...]]]]:
    """Plans by kernel, and per kernel (refusal or "", guarded parameter offsets with whether they are
    written).
    """
    plans: dict[str, Plan] = {}
    verdicts: dict[str, tuple[str, tuple[tuple[int, bool], ...]]] = {}
    for f in module.functions.values():
        if not f.defined or not f.entry:
            continue
        try:
            plan, needs = slice_function(f, blocks[f.name], layout)
        except Refusal as reason:
            verdicts[f.name] = (str(reason), ())
            continue
        plans[f.name] = plan
        verdicts[f.name] = ("", tuple(sorted(needs.guards.items())))
    return plans, verdicts
