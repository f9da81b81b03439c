"""All-reduce: every rank's ``recv`` is the sum of all ranks' ``send``."""

import numpy as np


def inputs(rank, params, rng):
    return {"send": rng.standard_normal(params["n"], dtype=np.float32)}


def reference(all_inputs, params):
    total = np.sum([item["send"].astype(np.float64) for item in all_inputs], axis=0)
    return [{"recv": total} for _ in all_inputs]


def work(params, rank):
    # With everybody's data needed everywhere, a rank sends at least its share twice: reduce-scatter and
    # all-gather.
    ranks = params["ranks"]
    moved = 2 * 4 * params["n"] * (ranks - 1) / ranks
    return {
        "flops": {"float32": params["n"] * (ranks - 1) / ranks},
        "bytes_out": moved,
        "bytes_in": moved,
        "hbm_bytes": 2 * 4 * params["n"],
    }
