"""Sources that cannot be read are refused with one line and the right exit code."""

from __future__ import annotations

import pytest

from cuco.errors import CucoError
from cuco.source import analyze, lint
from cuco.source.reading import Headers, read, toolchain_headers

BROKEN = """#include <nccl.h>
void step(float *a, ncclComm_t c, cudaStream_t s) {
  ncclAllReduce(a, a, 4, ncclFloat, ncclSum, c, s)
}
"""


def refused(call, *arguments, **names):
    with pytest.raises(CucoError) as error:
        call(*arguments, **names)
    assert "\n" not in str(error.value)
    return error.value


@pytest.mark.parametrize("call", [analyze, lint])
def test_syntax_errors_show_the_compilers_line(write, call):
    path = write(BROKEN)
    error = refused(call, path)
    assert error.exit_code == 1 and "program.cu" in str(error) and "expected" in str(error)
    assert "3" in str(error) or "4" in str(error)


def test_without_nvcc_clang_shows_its_line(write):
    headers = Headers(toolchain_headers().include_dirs)
    error = refused(read, write(BROKEN), headers)
    assert error.exit_code == 1 and "program.cu:3" in str(error) and "ncclAllReduce(a, a, 4" in str(error)


def test_missing_and_unreadable_files(write, tmp_path):
    assert refused(analyze, tmp_path / "none.cu").exit_code == 2
    assert refused(analyze, tmp_path).exit_code == 2
    binary = tmp_path / "binary.cu"
    binary.write_bytes(b"\xff\xfe\x00\x01")
    assert refused(analyze, binary).exit_code == 2


def test_a_missing_header_is_named(write):
    error = refused(read, write('#include "nowhere.h"\n'), Headers(toolchain_headers().include_dirs))
    assert error.exit_code == 1 and "nowhere.h" in str(error)


def test_headers_in_the_usual_places_are_found(tmp_path):
    (tmp_path / "project" / "include").mkdir(parents=True)
    (tmp_path / "project" / "src").mkdir()
    (tmp_path / "project" / "include" / "check.h").write_text("#define CHECK(x) (void)(x)\n")
    source = tmp_path / "project" / "src" / "a.cu"
    source.write_text(
        '#include <nccl.h>\n#include "check.h"\nvoid f(float *a, ncclComm_t c, cudaStream_t s) '
        "{ CHECK(ncclAllReduce(a, a, 1, ncclFloat, ncclSum, c, s)); }\n"
    )
    assert [one.op for one in analyze(source).edges] == ["AllReduce"]


def test_what_the_declarations_lack_is_left_to_nvcc(write):
    # mma.h is not declared for libclang; nvcc accepts the source, so it is read as far as it goes.
    path = write("""#include <mma.h>
#include <nccl.h>
__global__ void k(half *a, float *c) {
  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> f;
  nvcuda::wmma::fill_fragment(f, 0.f);
  nvcuda::wmma::store_matrix_sync(c, f, 16, nvcuda::wmma::mem_row_major);
}
void step(half *a, float *c, ncclComm_t comm, cudaStream_t s) {
  k<<<1, 32, 0, s>>>(a, c);
  ncclAllReduce(c, c, 256, ncclFloat, ncclSum, comm, s);
}
""")
    graph = analyze(path)
    assert [one.op for one in graph.edges] == ["AllReduce"] and graph.kernels[0].launches[0].grid == "1"


def test_reading_twice_gives_the_same(write):
    path = write(
        "#include <nccl.h>\nvoid f(float *a, ncclComm_t c, cudaStream_t s) "
        "{ ncclAllReduce(a, a, 1, ncclFloat, ncclSum, c, s); }\n"
    )
    assert analyze(path) == analyze(path) == analyze(path)


def test_an_empty_file_is_an_empty_graph(write):
    graph = analyze(write(""))
    assert graph.edges == () and graph.kernels == () and graph.timed_region is None
