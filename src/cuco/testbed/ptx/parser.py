"""PTX text -> Module: module directives, variables with initialisers, function headers. Bodies: body.py."""

from __future__ import annotations

from cuco.testbed.ptx.body import BodyParser
from cuco.testbed.ptx.lexer import cut_sections, tokenize
from cuco.testbed.ptx.locations import Locations
from cuco.testbed.ptx.model import FloatImm, Function, Imm, Module, PtxError, Sym, Variable
from cuco.testbed.ptx.stream import Stream

_LINKAGE = (".visible", ".extern", ".weak", ".common")
_DATA = (".global", ".const", ".shared")


def parse(text: str) -> Module:
    """Parse one PTX module. Raises PtxError with the line for anything outside the grammar."""
    text, strings = cut_sections(text)
    return _ModuleParser(Stream(text, tokenize(text)), Locations(strings, text)).module()


class _ModuleParser:
    def __init__(self, stream: Stream, locations: Locations) -> None:
        self.s = stream
        self.locations = locations
        self.result = Module()

    def module(self) -> Module:
        while not self.s.done:
            self._item()
        return self.result

    def _item(self) -> None:
        s = self.s
        linkage = set()
        while s.peek() in _LINKAGE:
            linkage.add(s.next())
        word, line = s.peek(), s.line
        if word == ".version":
            s.next()
            self.result.version = s.next()
        elif word == ".target":
            s.next()
            self.result.target = s.next()
            while s.accept(","):
                s.next()
        elif word == ".address_size":
            s.next()
            if s.integer() != 64:
                raise PtxError("only 64-bit PTX is supported", line)
        elif word == ".file":
            self.locations.file_directive(s)
        elif word == ".loc":
            self.locations.loc_directive(s)
        elif word in _DATA:
            self._data(linkage, line)
        elif word in (".entry", ".func"):
            self._function(linkage, line)
        elif word in (".pragma", ".alias"):
            while s.next() != ";":
                pass
        elif word == ";":
            s.next()
        else:
            raise PtxError(f"unexpected {word!r} at module level", line)

    # -------------------- variables
    def _data(self, linkage: set[str], line: int) -> None:
        space = self.s.next()[1:]
        for variable in self.s.variables(space, line):
            variable.extern = ".extern" in linkage
            variable.weak = ".weak" in linkage or ".common" in linkage
            if self.s.accept("="):
                variable.init = self._initialiser(variable)
            known = self.result.variables.get(variable.name)
            if known is None or known.extern:
                self.result.variables[variable.name] = variable
        self.s.expect(";")

    def _initialiser(self, variable: Variable) -> list[Imm | FloatImm | Sym]:
        values: list[Imm | FloatImm | Sym] = []
        if self.s.peek() == "{":
            self._braced(values)
        else:
            values.append(self._value())
        if variable.unsized:
            variable.count, variable.unsized = len(values), False
        if len(values) > variable.count:
            raise PtxError(f"too many initialisers for {variable.name}", variable.line)
        return values

    def _braced(self, values: list[Imm | FloatImm | Sym]) -> None:
        self.s.expect("{")
        while not self.s.accept("}"):
            if self.s.peek() == "{":
                self._braced(values)
            else:
                values.append(self._value())
            self.s.accept(",")

    def _value(self) -> Imm | FloatImm | Sym:
        """A number, `symbol`, `symbol+offset`, or `generic(symbol)` with an offset in or after the
        brackets.
        """
        s = self.s
        if s.peek() == "generic":
            s.next()
            s.expect("(")
            name, offset = s.next(), self._offset()
            s.expect(")")
            return Sym(name, offset + self._offset())
        if s.peek() in "+-" or s.tokens[s.position].kind in ("int", "float"):
            return s.number()
        return Sym(s.next(), self._offset())

    def _offset(self) -> int:
        if self.s.accept("+"):
            return self.s.integer()
        if self.s.peek() == "-":
            return self.s.integer()
        return 0

    # -------------------- functions
    def _function(self, linkage: set[str], line: int) -> None:
        s = self.s
        function = Function("", s.next() == ".entry", line)
        if not function.entry and s.peek() == "(":
            function.returns = self._parameters()
        function.name = s.next()
        if s.peek() == "(":
            function.params = self._parameters()
        self._limits(function)
        known = self.result.functions.get(function.name)
        if s.accept(";"):
            if known is None:
                self.result.functions[function.name] = function
            return
        function.defined = True
        BodyParser(s, function, self.locations).body()
        if known is None or not known.defined:
            self.result.functions[function.name] = function

    def _parameters(self) -> list[Variable]:
        s, found = self.s, []
        s.expect("(")
        while not s.accept(")"):
            line = s.line
            space = s.next()[1:]
            if space not in ("param", "reg"):
                raise PtxError(f"parameter in state space .{space}", line)
            found.append(self._parameter(space, line))
            s.accept(",")
        return found

    def _parameter(self, space: str, line: int) -> Variable:
        """One parameter; `.variables` would swallow the comma, so a declarator list of one is read here."""
        s = self.s
        stop, depth = s.position, 0
        while depth or s.tokens[stop].text not in (",", ")"):
            depth += (s.tokens[stop].text in "([") - (s.tokens[stop].text in ")]")
            stop += 1
        part = Stream(s.text, s.tokens[s.position : stop])
        (variable,) = part.variables(space, line)
        s.position = stop
        return variable

    def _limits(self, function: Function) -> None:
        s = self.s
        while s.peek().startswith("."):
            line = s.line
            word = s.next()
            if word in (".maxntid", ".reqntid", ".reqnctapercluster", ".maxclusterrank"):
                values = [s.integer()]
                while s.accept(","):
                    values.append(s.integer())
                x, y, z = (values + [1, 1, 1])[:3]
                if word == ".maxntid":
                    function.maxntid = (x, y, z)
                elif word == ".reqntid":
                    function.reqntid = (x, y, z)
                elif word == ".reqnctapercluster":
                    function.cluster = (x, y, z)
            elif word in (".minnctapersm", ".maxnctapersm", ".maxnreg"):
                value = s.integer()
                if word == ".minnctapersm":
                    function.minnctapersm = value
            elif word in (".noreturn", ".explicitcluster", ".blocksareclusters", ".abi_preserve"):
                continue
            elif word == ".pragma":
                while s.next() != ";":
                    pass
            elif word == ".attribute":
                s.skip_parentheses()
            else:
                raise PtxError(f"unknown directive {word} on {function.name}", line)
