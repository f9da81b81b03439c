"""`.file` and `.loc` directives -> source positions with the chain of calls they were inlined through.

PTX gives every inlined position one outer position (`inlined_at`), not the whole chain. The outer position
was itself named by an earlier `.loc`, so the chain is found by following those.
"""

from __future__ import annotations

import re

from cuco.testbed.ptx.model import NO_LOC, Frame, Loc
from cuco.testbed.ptx.stream import Stream

_Position = tuple[int, int, int]
_MAX_DEPTH = 64
_FILE = re.compile(r'^[ \t]*\.file[ \t]+(\d+)[ \t]+"([^"\n]*)"', re.MULTILINE)


class Locations:
    """The current source position while a module is parsed."""

    def __init__(self, strings: dict[str, str], text: str = "") -> None:
        self.strings = strings
        # nvcc writes `.file` behind the functions whose `.loc` refer to it.
        self.files = {int(index): name for index, name in _FILE.findall(text)}
        self.current = NO_LOC
        self._known: dict[_Position, Loc] = {}
        self._function = ""

    def enter(self, function: str) -> None:
        """Start of a function body: positions of other functions mean nothing here."""
        self.current = NO_LOC
        self._known = {}
        self._function = function

    def file_directive(self, s: Stream) -> None:
        s.expect(".file")
        index = s.integer()
        self.files[index] = s.next()[1:-1]
        while s.accept(","):
            s.integer()

    def loc_directive(self, s: Stream) -> None:
        s.expect(".loc")
        where = (s.integer(), s.integer(), s.integer())
        function, outer = "", None
        while s.accept(","):
            word = s.next()
            if word == "function_name":
                function = self.strings.get(s.next(), "")
                if s.accept("+"):
                    s.integer()
            elif word == "inlined_at":
                outer = (s.integer(), s.integer(), s.integer())
            else:
                raise s.error(f"unknown attribute {word} of .loc")
        if where[1] == 0:
            return  # line 0: compiler-generated code, keep the last position
        name = function or self._function
        frame = Frame(self.files.get(where[0], ""), where[1], name)
        self.current = Loc((frame, *self._outer(outer)))
        self._known[where] = self.current

    def _outer(self, position: _Position | None) -> tuple[Frame, ...]:
        if position is None:
            return ()
        known = self._known.get(position)
        if known is not None:
            return known.frames[:_MAX_DEPTH]
        return (Frame(self.files.get(position[0], ""), position[1], self._function),)
