"""All-to-all: row p of rank r's ``recv`` is row r of rank p's ``send``."""

import numpy as np


def inputs(rank, params, rng):
    return {"send": rng.standard_normal((params["ranks"], params["n"]), dtype=np.float32)}


def reference(all_inputs, params):
    sent = np.stack([item["send"] for item in all_inputs]).astype(np.float64)
    return [{"recv": sent[:, rank]} for rank in range(len(all_inputs))]


def work(params, rank):
    moved = 4 * params["n"] * (params["ranks"] - 1)
    return {
        "flops": {},
        "bytes_out": moved,
        "bytes_in": moved,
        "hbm_bytes": 8 * params["n"] * params["ranks"],
    }
