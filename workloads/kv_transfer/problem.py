"""Key-value transfer: K = X Wk^T and V = X Wv^T on the prefill rank 0, copies of both on the decode rank
1."""

import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16


def inputs(rank, params, rng):
    d, s, kv = params["d"], params["s"], params["kv"]
    if rank != 0:
        empty = np.zeros((0, d), dtype=BF16)
        return {"x": empty, "wk": empty, "wv": empty}

    # Weights are scaled so that K and V have variance 1 at every d.
    def weights():
        return (rng.standard_normal((kv, d), dtype=np.float32) / np.sqrt(d)).astype(BF16)

    x = rng.standard_normal((s, d), dtype=np.float32).astype(BF16)
    return {"x": x, "wk": weights(), "wv": weights()}


def reference(all_inputs, params):
    x = all_inputs[0]["x"].astype(np.float64)
    result = {
        "key": x @ all_inputs[0]["wk"].astype(np.float64).T,
        "value": x @ all_inputs[0]["wv"].astype(np.float64).T,
    }
    return [result, result]


def work(params, rank):
    d, s, kv = params["d"], params["s"], params["kv"]
    moved = 2 * 2 * s * kv
    if rank != 0:
        return {"flops": {}, "bytes_out": 0, "bytes_in": moved, "hbm_bytes": moved}
    hbm = 2 * (s * d + 2 * kv * d) + moved
    return {"flops": {"bfloat16": 2 * 2 * s * kv * d}, "bytes_out": moved, "bytes_in": 0, "hbm_bytes": hbm}
