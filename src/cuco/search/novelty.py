"""When two candidates are the same, and how different two that are not.

The same: equal token sequences, comments and layout aside. How different: cosine of hashed n-gram vectors of
tokens in which the candidate's own names are replaced by the order in which they appear, so that renaming and
reformatting change nothing and a changed constant does.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

DIMENSIONS = 1024
_GRAM = 4
_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/"  # comments
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    r"|[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.'])*"
    r"|<<<|>>>|<<=|>>=|->|::|[-+*/%&|^<>=!]=|&&|\|\||<<|>>|\+\+|--|\S",
    re.DOTALL,
)
_NAME = re.compile(r"[A-Za-z_]\w*")
#: Names with a meaning outside the candidate keep it; all others may be renamed freely.
_FIXED = re.compile(
    r"(nccl|cuda|cuco|cu|__|thread|block|grid|warp|atomic|std|mma|memory_order|uint|int\d|size_t)\w*$|"
    r"(alignas|asm|auto|bool|break|case|char|class|const|constexpr|continue|default|delete|do|double|else|enum|"
    r"extern|false|float|for|goto|if|inline|int|long|namespace|new|nullptr|operator|private|public|return|short|"
    r"signed|sizeof|static|struct|switch|template|this|true|typedef|typename|union|unsigned|using|void|volatile|"
    r"while|include|define|ifdef|ifndef|endif|pragma|volatile|half|bfloat16)$"
)


def tokens(text: str) -> list[str]:
    """The tokens of C++ or CUDA text, comments left out."""
    return [token for token in _TOKEN.findall(text) if not token.startswith(("//", "/*"))]


def source_hash(sources: Mapping[str, str]) -> str:
    """SHA-256 of all files' tokens: equal exactly for candidates that differ in comments and layout only."""
    digest = hashlib.sha256()
    for name in sorted(sources):
        digest.update(f"\0{name}\0".encode())
        digest.update(_joined(sources[name]).encode())
    return digest.hexdigest()


def _joined(text: str) -> str:
    # A line break ends a preprocessor directive, so it belongs to the token sequence there and nowhere else.
    lines = re.sub(r"\\\n", " ", text).split("\n")
    return "\x1f".join(
        token
        for block in _blocks(lines)
        for token in [*tokens(block), *(["\n"] if block.lstrip().startswith("#") else [])]
    )


def _blocks(lines: Sequence[str]) -> Iterable[str]:
    """Runs of ordinary lines, each preprocessor line on its own."""
    run: list[str] = []
    in_comment = False
    for line in lines:
        if line.lstrip().startswith("#") and not in_comment:
            yield "\n".join(run)
            yield line
            run = []
        else:
            run.append(line)
        bare = re.sub(r'"(?:\\.|[^"\\])*"|//[^\n]*', "", line)
        opened, closed = bare.rfind("/*"), bare.rfind("*/")
        in_comment = opened > closed if opened >= 0 or closed >= 0 else in_comment
    yield "\n".join(run)


def renamed(sequence: Iterable[str]) -> list[str]:
    """Tokens with the candidate's own names replaced by the order of their first appearance."""
    seen: dict[str, str] = {}
    return [
        seen.setdefault(token, f"${len(seen)}")
        if _NAME.fullmatch(token) and not _FIXED.match(token)
        else token
        for token in sequence
    ]


def vector(sources: Mapping[str, str]) -> Vector:
    """Hashed n-gram counts of a candidate, damped by their logarithm; float32 of length ``DIMENSIONS``."""
    import numpy as np

    counts = np.zeros(DIMENSIONS, dtype=np.float32)
    for name in sorted(sources):
        sequence = renamed(tokens(sources[name]))
        for start in range(len(sequence) - _GRAM + 1):
            gram = zlib.crc32("\x1f".join(sequence[start : start + _GRAM]).encode())
            counts[gram % DIMENSIONS] += 1.0 if gram & 0x80000000 else -1.0
    damped: Vector = np.sign(counts) * np.log1p(np.abs(counts))
    return damped.astype(np.float32)


def novelty(own: Vector, others: Sequence[Vector]) -> float:
    """1 minus the greatest cosine to ``others``, in 0..1; 1 where there are none.

    What all of them share (the user's own kernel, the frame of the file) is subtracted first, else it would
    make every pair look alike.
    """
    import numpy as np

    if not others:
        return 1.0
    matrix = np.stack([own, *others])
    if len(others) > 1:
        matrix = matrix - matrix[1:].mean(axis=0)
    lengths = np.linalg.norm(matrix, axis=1)
    if lengths[0] == 0:
        return 0.0
    cosines = matrix[1:] @ matrix[0] / np.maximum(lengths[1:] * lengths[0], 1e-12)
    return float(np.clip(1.0 - cosines.max(), 0.0, 1.0))
