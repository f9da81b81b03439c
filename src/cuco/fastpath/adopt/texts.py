"""Text of an adopted workload's files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cuco.fastpath.adopt.names import identifiers

FIND_BUFFER = """static const cuco_buffer *find_buffer(const cuco_ctx *ctx, const char *name) {
  for (int i = 0; i < ctx->nbuffers; i++)
    if (strcmp(ctx->buffers[i].name, name) == 0) return &ctx->buffers[i];
  return nullptr;
}
"""
FIND_PARAM = """static int64_t find_param(const cuco_ctx *ctx, const char *name) {
  for (int i = 0; i < ctx->nparams; i++)
    if (strcmp(ctx->params[i].name, name) == 0) return ctx->params[i].i;
  return 0;
}
"""


def launch_function(lines: Sequence[str]) -> str:
    """The three entry points around a step's lines."""
    body = "\n".join(f"  {line}" for line in lines)
    return f"""
extern "C" int cuco_prepare(const cuco_ctx *, void **) {{ return 0; }}

extern "C" int cuco_launch(const cuco_ctx *ctx, void *, cudaStream_t stream) {{
{body}
  return 0;
}}

extern "C" int cuco_finish(const cuco_ctx *, void *) {{ return 0; }}
"""


def workload_toml(
    name: str,
    summary: str,
    params: Mapping[str, int | None],
    buffers: Sequence[tuple[str, str, str, Sequence[str]]],
    exact: bool,
    ranks: int,
) -> str:
    """``workload.toml``; a buffer is (name, dtype, role, shape)."""
    lines = [
        f'name = "{name}"',
        f'summary = "{summary}"',
        f'ranks = {{ default = {ranks}, allowed = "ranks >= 2" }}',
        'lsa_team = "ranks"',
        'machine = "h200-nvlink-8"',
        "",
        "[params]",
    ]
    lines += [f'{one} = {{ type = "int", min = 1 }}' for one in params]
    for size, fallback in (("tiny", 1024), ("dev", 65536), ("full", 1048576)):
        lines += ["", f"[sizes.{size}]"]
        lines += [f"{one} = {_size(value, fallback, size)}" for one, value in params.items()]
    for buffer, dtype, role, shape in buffers:
        extents = ", ".join(f'"{one}"' for one in shape)
        lines += [
            "",
            "[[buffers]]",
            f'name = "{buffer}"',
            f'dtype = "{dtype}"',
            f'role = "{role}"',
            f"shape = [{extents}]",
        ]
    for buffer, dtype, role, _ in buffers:
        if role in ("out", "inout"):
            loose = (
                "rtol = 0.02\natol = 0.02"
                if "16" in dtype or "float8" in dtype
                else "rtol = 1e-5\natol = 1e-5"
            )
            lines += ["", f"[outputs.{buffer}]", "exact = true" if exact or "int" in dtype else loose]
    return "\n".join(lines) + "\n"


def _size(value: int | None, fallback: int, size: str) -> int:
    """The program's own value at full size, and less of it below."""
    if value is None or value < 1:
        return fallback
    return value if size == "full" else min(value, fallback)


def problem_py(
    summary: str,
    inputs: Sequence[tuple[str, str, Sequence[str]]],
    names: Sequence[str],
    reference: str,
    moved: str,
) -> str:
    """``problem.py``; an input is (name, dtype, shape). ``reference`` is the function's body."""
    special = any(dtype in ("bfloat16", "float8_e4m3", "float8_e5m2") for _, dtype, _ in inputs)
    head = (
        [f'"""{summary}."""', ""] + (["import ml_dtypes"] if special else []) + ["import numpy as np", "", ""]
    )
    data = [f'        "{name}": {_random(dtype, shape)},' for name, dtype, shape in inputs]
    shapes = " ".join(extent for _, _, shape in inputs for extent in shape)
    lines = ["def inputs(rank, params, rng):", *_unpacked(names, shapes), "    return {", *data, "    }"]
    lines += ["", "", "def reference(all_inputs, params):", *(f"    {one}" for one in reference.splitlines())]
    lines += [
        "",
        "",
        "def work(params, rank):",
        *_unpacked(names, moved),
        f"    moved = {moved}",
        '    return {"flops": {}, "bytes_out": moved, "bytes_in": moved, "hbm_bytes": 2 * moved}',
    ]
    return "\n".join(head + lines) + "\n"


def _unpacked(names: Sequence[str], text: str) -> list[str]:
    """Lines that take the parameters of which a text speaks out of ``params``."""
    used = set(identifiers(text))
    return [f'    {name} = params["{name}"]' for name in (*names, "ranks") if name in used]


def _random(dtype: str, shape: Sequence[str]) -> str:
    extents = f"({', '.join(shape)},)"
    if "int" in dtype:
        return f"rng.integers(0, 100, {extents}).astype(np.{dtype})"
    if dtype in ("float32", "float64"):
        return f"rng.standard_normal({extents}, dtype=np.{dtype})"
    kind = {
        "float16": "np.float16",
        "bfloat16": "ml_dtypes.bfloat16",
        "float8_e4m3": "ml_dtypes.float8_e4m3fn",
        "float8_e5m2": "ml_dtypes.float8_e5m2",
    }[dtype]
    return f"rng.standard_normal({extents}, dtype=np.float32).astype({kind})"
