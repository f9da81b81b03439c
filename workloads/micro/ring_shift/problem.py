"""Ring shift: ``recv`` of rank r is ``send`` of rank r - 1, whole and unchanged."""

import numpy as np


def inputs(rank, params, rng):
    return {"send": rng.standard_normal(params["n"], dtype=np.float32)}


def reference(all_inputs, params):
    ranks = len(all_inputs)
    return [{"recv": all_inputs[(rank - 1) % ranks]["send"].astype(np.float64)} for rank in range(ranks)]


def work(params, rank):
    moved = 4 * params["n"]
    return {"flops": {}, "bytes_out": moved, "bytes_in": moved, "hbm_bytes": 2 * moved}
