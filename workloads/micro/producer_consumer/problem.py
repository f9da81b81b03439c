"""Producer and consumer: rank 2k + 1 gets 2 x + 1 of rank 2k's ``send``, plus its own ``send``."""

import numpy as np


def inputs(rank, params, rng):
    return {"send": rng.standard_normal(params["n"], dtype=np.float32)}


def reference(all_inputs, params):
    result = []
    for rank, item in enumerate(all_inputs):
        if rank % 2 == 0:
            result.append({})
        else:
            produced = 2.0 * all_inputs[rank - 1]["send"].astype(np.float64) + 1.0
            result.append({"recv": produced + item["send"]})
    return result


def work(params, rank):
    moved, odd = 4 * params["n"], rank % 2
    return {
        "flops": {"float32": params["n"] if odd else 2 * params["n"]},
        "bytes_out": 0 if odd else moved,
        "bytes_in": moved if odd else 0,
        "hbm_bytes": 3 * moved if odd else moved,
    }
