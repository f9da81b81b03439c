"""Shape expressions: what they compute, and that nothing else is ever executed."""

import pytest

from cuco.errors import UsageError
from cuco.workload.expressions import Expression

NAMES = {"n": 12, "ranks": 4, "rank": 3}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n", 12),
        ("n // ranks", 3),
        ("n * ranks - 1", 47),
        ("-n + 20", 8),
        ("n % 5", 2),
        ("2 ** 10", 1024),
        ("n if rank % 2 == 1 else 0", 12),
        ("0 if rank else 7", 0),
        ("min(n, 5) + max(ranks, rank, 9) + abs(-2)", 16),
        ("ranks >= 2 and n % ranks == 0", True),
        ("1 < ranks < 3", False),
        ("not ranks", False),
        ("0 or n", 12),
    ],
)
def test_value(text: str, value: int) -> None:
    assert Expression(text, "shape").evaluate(NAMES) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "n.__class__",
        "(lambda: 1)()",
        "[1][0]",
        "'text'",
        "open('x')",
        "min(*[1, 2])",
        "n if",
        "2 ** 100000",
        "10 ** 60 * 10",
        "min(1)",
        "unknown + 1",
        "n << 3",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        Expression(text, "buffers 'a' shape").evaluate(NAMES)
    assert "buffers 'a' shape" in str(caught.value)


def test_division_by_zero_names_the_values() -> None:
    with pytest.raises(UsageError, match="divides by zero.*n=12"):
        Expression("n // (ranks - 4)", "shape").evaluate(NAMES)


def test_integer_refuses_fractions_and_negatives() -> None:
    with pytest.raises(UsageError, match="not an integer"):
        Expression("n / 5", "shape").integer(NAMES)
    with pytest.raises(UsageError, match="below 0"):
        Expression("rank - n", "shape").integer(NAMES)
