"""Exact reference rounding for floating formats, in rationals: independent of any hardware or library
rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    exponent: int
    mantissa: int
    infinite: bool = True

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def top(self) -> int:
        """The code of infinity, or (without infinities) of NaN."""
        return ((1 << self.exponent) - 1) << self.mantissa if self.infinite else (1 << (self.bits - 1)) - 1


F64, F32, F16, BF16 = Format(11, 52), Format(8, 23), Format(5, 10), Format(8, 7)
TF32, E4M3, E5M2 = Format(8, 10), Format(4, 3, infinite=False), Format(5, 2)


def decode(code: int, f: Format) -> Fraction | None:
    """The number a code stands for; None for infinities and NaN."""
    sign = -1 if code >> (f.bits - 1) else 1
    body = code & ((1 << (f.bits - 1)) - 1)
    if body >= f.top:
        return None
    e, m = body >> f.mantissa, body & ((1 << f.mantissa) - 1)
    if e == 0:
        return sign * Fraction(m) * Fraction(2) ** (1 - f.bias - f.mantissa)
    return sign * Fraction(m + (1 << f.mantissa)) * Fraction(2) ** (e - f.bias - f.mantissa)


def encode(
    x: Fraction, f: Format, mode: str = "rn", negative_zero: bool = False, satfinite: bool = False
) -> int:
    """The code of x rounded by mode (rn, rz, rm, rp, rna)."""
    sign = 1 << (f.bits - 1) if x < 0 or (x == 0 and negative_zero) else 0
    if x == 0:
        return sign
    a = abs(x)
    e = a.numerator.bit_length() - a.denominator.bit_length()
    if Fraction(2) ** e > a:
        e -= 1
    e = max(e, 1 - f.bias)
    scaled = a / Fraction(2) ** (e - f.mantissa)
    n = math.floor(scaled)
    rest = scaled - n
    half = Fraction(1, 2)
    up = {
        "rn": rest > half or (rest == half and n % 2 == 1),
        "rna": rest >= half,
        "rz": False,
        "rm": x < 0 and rest > 0,
        "rp": x > 0 and rest > 0,
    }[mode]
    n += up
    code = ((e + f.bias) << f.mantissa) + n - (1 << f.mantissa)
    if code >= f.top:
        to_largest = satfinite or mode == "rz" or (mode == "rm" and x > 0) or (mode == "rp" and x < 0)
        code = f.top - 1 if to_largest else f.top
    return sign | code
