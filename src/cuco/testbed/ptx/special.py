"""Special registers as C++ over the core's ThreadView (abi.h)."""

from __future__ import annotations

import re

from cuco.testbed.ptx.table import Unsupported

_AXIS = {"x": 0, "y": 1, "z": 2}
_SCALARS = {
    "%laneid": "T_->lane",
    "%warpid": "T_->warp",
    "%nwarpid": "B_->nwarps",
    "%smid": "B_->smid",
    "%nsmid": "B_->nsmid",
    "%gridid": "B_->gridid",
    "%clock": "uint32_t(emu_clock(T_, @))",
    "%clock_hi": "uint32_t(emu_clock(T_, @) >> 32)",
    "%clock64": "emu_clock(T_, @)",
    "%globaltimer": "emu_globaltimer(T_, @)",
    "%globaltimer_lo": "uint32_t(emu_globaltimer(T_, @))",
    "%globaltimer_hi": "uint32_t(emu_globaltimer(T_, @) >> 32)",
    "%lanemask_eq": "(1u << T_->lane)",
    "%lanemask_lt": "((1u << T_->lane) - 1)",
    "%lanemask_le": "((2u << T_->lane) - 1)",
    "%lanemask_ge": "~((1u << T_->lane) - 1)",
    "%lanemask_gt": "~((2u << T_->lane) - 1)",
    "%envreg1": "uint32_t(B_->grid_workspace >> 32)",
    "%envreg2": "uint32_t(B_->grid_workspace)",
    "%dynamic_smem_size": "B_->dynamic_bytes",
    "%total_smem_size": "B_->shared_bytes",
    "%aggr_smem_size": "B_->shared_bytes",
    "%current_graph_exec": "0",
    "%reserved_smem_offset_begin": "0",
    "%reserved_smem_offset_end": "0",
    # clusters of one CTA
    "%is_explicit_cluster": "false",
    "%cluster_ctarank": "0u",
    "%cluster_nctarank": "1u",
}
_VECTORS = {
    "tid": "T_->tid[{}]",
    "ntid": "B_->ntid[{}]",
    "ctaid": "B_->ctaid[{}]",
    "nctaid": "B_->nctaid[{}]",
    "clusterid": "B_->ctaid[{}]",
    "nclusterid": "B_->nctaid[{}]",
    "cluster_ctaid": "0u",
    "cluster_nctaid": "1u",
}

VARYING = {"%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"}
"""Registers whose value changes while a thread runs."""


def special_register(name: str) -> str:
    """A C++ expression for a special register (`@` stands for the site); Unsupported for those we do not
    model.
    """
    if name in _SCALARS:
        return _SCALARS[name]
    match = re.fullmatch(r"%(\w+)\.([xyzw])", name)
    if match and match.group(1) in _VECTORS:
        if match.group(2) == "w":
            return "0u"
        return _VECTORS[match.group(1)].format(_AXIS[match.group(2)])
    if re.fullmatch(r"%envreg\d+", name):
        return "0u"
    raise Unsupported(f"special register {name}")
