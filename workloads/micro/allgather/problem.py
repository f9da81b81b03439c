"""All-gather: row r of every rank's ``recv`` is ``send`` of rank r."""

import numpy as np


def inputs(rank, params, rng):
    return {"send": rng.standard_normal(params["n"], dtype=np.float32)}


def reference(all_inputs, params):
    gathered = np.stack([item["send"] for item in all_inputs]).astype(np.float64)
    return [{"recv": gathered} for _ in all_inputs]


def work(params, rank):
    moved = 4 * params["n"] * (params["ranks"] - 1)
    return {
        "flops": {},
        "bytes_out": moved,
        "bytes_in": moved,
        "hbm_bytes": 4 * params["n"] * (params["ranks"] + 1),
    }
