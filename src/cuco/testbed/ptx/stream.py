"""A cursor over PTX tokens with the small helpers that both parsers use."""

from __future__ import annotations

import struct

from cuco.testbed.ptx.lexer import Token
from cuco.testbed.ptx.model import SIZES, FloatImm, Imm, PtxError, Variable

_STATE_SPACES = ("reg", "shared", "global", "const", "local", "param")


class Stream:
    """Tokens of one module, read left to right."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.position = 0

    @property
    def done(self) -> bool:
        return self.position >= len(self.tokens)

    @property
    def line(self) -> int:
        index = min(self.position, len(self.tokens) - 1)
        return self.tokens[index].line if self.tokens else 1

    def peek(self, ahead: int = 0) -> str:
        """Text of a coming token, "" past the end."""
        index = self.position + ahead
        return self.tokens[index].text if index < len(self.tokens) else ""

    def token(self) -> Token:
        if self.done:
            raise PtxError("unexpected end of file", self.line)
        token = self.tokens[self.position]
        self.position += 1
        return token

    def next(self) -> str:
        return self.token().text

    def accept(self, text: str) -> bool:
        if self.peek() == text:
            self.position += 1
            return True
        return False

    def expect(self, text: str) -> None:
        found = self.peek()
        if found != text:
            raise PtxError(f"expected {text!r}, found {found!r}", self.line)
        self.position += 1

    def error(self, message: str) -> PtxError:
        return PtxError(message, self.line)

    # -------------------- literals
    def integer(self) -> int:
        sign = -1 if self.accept("-") else 1
        token = self.token()
        if token.kind != "int":
            raise PtxError(f"expected an integer, found {token.text!r}", token.line)
        return sign * parse_int(token.text)

    def number(self) -> Imm | FloatImm:
        """An integer or floating literal with an optional sign."""
        negative = self.accept("-")
        if not negative:
            self.accept("+")
        token = self.token()
        if token.kind == "int":
            value = parse_int(token.text)
            return Imm(-value if negative else value)
        if token.kind == "float":
            return parse_float(token.text, negative)
        raise PtxError(f"expected a number, found {token.text!r}", token.line)

    # -------------------- declarations
    def variables(self, space: str, line: int) -> list[Variable]:
        """The rest of a variable declaration after its state space, without the final `;`.

        One element per declarator; `name<n>` is expanded for registers (name0 .. name(n-1)).
        """
        align, kind, lanes = 0, "", 1
        while self.peek().startswith("."):
            word = self.next()[1:]
            if word == "align":
                align = self.integer()
            elif word in SIZES:
                kind = word
            elif word in ("v2", "v4", "v8"):
                lanes = int(word[1])
            elif word == "attribute":
                self.skip_parentheses()
            elif word == "ptr" or word in _STATE_SPACES:
                continue  # a hint on parameters: .ptr .global .align n
            else:
                raise self.error(f"unknown attribute .{word} in a declaration")
        if not kind:
            raise self.error("a declaration without a type")
        found = [self._declarator(space, kind, align, lanes, line)]
        while self.accept(","):
            found.append(self._declarator(space, kind, align, lanes, line))
        return [v for group in found for v in group]

    def _declarator(self, space: str, kind: str, align: int, lanes: int, line: int) -> list[Variable]:
        name = self.next()
        align = align or SIZES[kind] * lanes
        if self.accept("<"):
            count = self.integer()
            self.expect(">")
            return [Variable(f"{name}{i}", space, kind, align, lanes, line) for i in range(count)]
        count, unsized, dimensioned = lanes, False, False
        while self.accept("["):
            if self.peek() == "]":
                unsized = True
            else:
                count *= self.integer()
            dimensioned = True
            self.expect("]")
        variable = Variable(name, space, kind, align, count, line, unsized=unsized and dimensioned)
        return [variable]

    def skip_parentheses(self) -> None:
        self.expect("(")
        depth = 1
        while depth:
            text = self.next()
            depth += (text == "(") - (text == ")")


def parse_int(text: str) -> int:
    """A PTX integer literal: decimal, 0x, 0b or octal, with an optional U."""
    text = text.rstrip("U")
    if len(text) > 1 and text[0] == "0" and text[1].isdigit():
        return int(text, 8)
    return int(text, 0)


def parse_float(text: str, negative: bool) -> FloatImm:
    """A PTX floating literal as bits; decimal ones are double precision."""
    if text[:2] in ("0f", "0F"):
        bits, width = int(text[2:], 16), 4
    elif text[:2] in ("0d", "0D"):
        bits, width = int(text[2:], 16), 8
    else:
        bits, width = struct.unpack("<Q", struct.pack("<d", float(text)))[0], 8
    if negative:
        bits ^= 1 << (8 * width - 1)
    return FloatImm(bits, width)
