"""Function bodies: declarations, labels, instructions and call sequences."""

from __future__ import annotations

import re

from cuco.testbed.ptx.locations import Locations
from cuco.testbed.ptx.model import (
    Addr,
    CallTarget,
    FloatImm,
    Function,
    Imm,
    Instruction,
    Label,
    Operand,
    Pair,
    PtxError,
    Reg,
    Sink,
    Sym,
    Variable,
    Vec,
)
from cuco.testbed.ptx.stream import Stream

_SPECIAL = re.compile(
    r"%(tid|ntid|ctaid|nctaid|laneid|warpid|nwarpid|smid|nsmid|gridid|clock|clock_hi|clock64|globaltimer(_lo|_hi)?"
    r"|lanemask_(eq|le|lt|ge|gt)|envreg\d+|dynamic_smem_size|total_smem_size|aggr_smem_size|is_explicit_cluster"
    r"|clusterid|nclusterid|cluster_ctaid|cluster_nctaid|cluster_ctarank|cluster_nctarank|current_graph_exec"
    r"|reserved_smem_\w+|pm\d+(_64)?)(\.[xyzw])?$"
)


class _Scope:
    """Names declared between braces; inline assembly opens scopes of its own."""

    def __init__(self, parent: _Scope | None) -> None:
        self.parent = parent
        self.names: dict[str, str] = {}

    def find(self, name: str) -> str | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None


class BodyParser:
    """Parses `{ ... }` of one function into Function.body, .registers and .variables."""

    def __init__(self, stream: Stream, function: Function, locations: Locations) -> None:
        self.s = stream
        self.f = function
        self.locations = locations
        self.scope = _Scope(None)
        self.taken: set[str] = set()

    def body(self) -> None:
        self.locations.enter(self.f.name)
        for parameter in (*self.f.params, *self.f.returns):
            self.scope.names[parameter.name] = parameter.name
            self.taken.add(parameter.name)
            if parameter.space == "reg":
                self.f.registers[parameter.name] = parameter.type
        self.s.expect("{")
        self._declare_labels()
        depth = 1
        while depth:
            if self.s.accept("{"):
                self.scope = _Scope(self.scope)
                self._declare_labels()
                depth += 1
            elif self.s.accept("}"):
                self.scope = self.scope.parent or self.scope
                depth -= 1
            else:
                self._statement()

    def _declare_labels(self) -> None:
        """Labels are visible in their whole scope, also before they are placed."""
        tokens, i, depth = self.s.tokens, self.s.position, 0
        while i + 1 < len(tokens) and depth >= 0:
            text = tokens[i].text
            if text in ("{", "}"):
                depth += 1 if text == "{" else -1
            elif depth == 0 and tokens[i + 1].text == ":" and tokens[i].kind == "word":
                self._declare(text)
            i += 1

    def _declare(self, name: str) -> str:
        unique, n = name, 2
        while unique in self.taken:
            unique, n = f"{name}__{n}", n + 1
        self.taken.add(unique)
        self.scope.names[name] = unique
        return unique

    # -------------------- statements
    def _statement(self) -> None:
        s, word = self.s, self.s.peek()
        if word == ".loc":
            self.locations.loc_directive(s)
        elif word == ".file":
            self.locations.file_directive(s)
        elif word in (".reg", ".shared", ".local", ".param", ".global", ".const"):
            self._declaration()
        elif word in (".pragma",):
            while s.next() != ";":
                pass
        elif word == ";":
            s.next()
        elif s.peek(1) == ":":
            self._label()
        elif word.startswith("."):
            raise s.error(f"unknown directive {word} in {self.f.name}")
        else:
            self._instruction()

    def _declaration(self) -> None:
        line = self.s.line
        space = self.s.next()[1:]
        for variable in self.s.variables(space, line):
            self._declare_variable(variable)
        self.s.expect(";")

    def _declare_variable(self, variable: Variable) -> None:
        unique = self._declare(variable.name)
        if variable.space != "reg":
            self.f.variables[unique] = Variable(
                unique, variable.space, variable.type, variable.align, variable.count, variable.line
            )
        elif variable.count == 1:
            self.f.registers[unique] = variable.type
        else:
            for lane, letter in zip(range(variable.count), "xyzw", strict=False):
                part = self._declare(f"{variable.name}.{letter}")
                self.f.registers[part] = variable.type
                self.scope.names[f"{variable.name}[{lane}]"] = part

    def _label(self) -> None:
        s = self.s
        line, name = s.line, self._resolve(s.next())
        s.expect(":")
        word = s.peek()
        if word == ".branchtargets":
            s.next()
            targets = [self._resolve(s.next())]
            while s.accept(","):
                targets.append(self._resolve(s.next()))
            s.expect(";")
            self.f.tables[name] = targets
        elif word in (".callprototype", ".calltargets"):
            self.f.prototypes.add(name)
            while s.next() != ";":
                pass
        else:
            self.f.body.append(Label(name, line))

    def _resolve(self, name: str) -> str:
        return self.scope.find(name) or name

    # -------------------- instructions
    def _instruction(self) -> None:
        s = self.s
        start = s.tokens[s.position]
        guard = self._guard()
        token = s.token()
        if token.kind != "word":
            raise PtxError(f"expected an instruction, found {token.text!r}", token.line)
        call, operands = None, []
        if token.text.split(".")[0] == "call":
            call = self._call()
        elif s.peek() != ";":
            operands.append(self._operand())
            while s.accept(","):
                operands.append(self._operand())
        end = s.tokens[s.position] if not s.done else start
        if not s.accept(";"):
            raise PtxError(f"expected ';' after {token.text}, found {s.peek()!r}", token.line)
        text = " ".join(s.text[start.start : end.start].split())
        text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text)
        self.f.body.append(
            Instruction(token.text, operands, guard, token.line, self.locations.current, text, call)
        )

    def _guard(self) -> Reg | None:
        if not self.s.accept("@"):
            return None
        negated = self.s.accept("!")
        return Reg(self._resolve(self.s.next()), negated=negated)

    def _call(self) -> CallTarget:
        s = self.s
        returns: tuple[str, ...] = ()
        if s.peek() == "(":
            returns = self._names()
            s.expect(",")
        name = s.next()
        callee: Reg | Sym = Reg(self._resolve(name)) if self._resolve(name) in self.f.registers else Sym(name)
        arguments: tuple[str, ...] = ()
        while s.accept(","):
            if s.peek() == "(":
                arguments = self._names()
            else:
                s.next()  # the prototype: calls are made with the arguments at hand
        return CallTarget(callee, returns, arguments)

    def _names(self) -> tuple[str, ...]:
        s, names = self.s, []
        s.expect("(")
        while not s.accept(")"):
            names.append(self._resolve(s.next()))
            s.accept(",")
        return tuple(names)

    def _operand(self) -> Operand:
        s = self.s
        operand = self._simple()
        if s.accept("|"):
            return Pair(operand, self._simple())
        return operand

    def _simple(self) -> Operand:
        s, text = self.s, self.s.peek()
        if text == "{":
            return self._vector()
        if text == "[":
            return self._address()
        if text == "_":
            s.next()
            return Sink()
        if text == "!":
            s.next()
            return Reg(self._resolve(s.next()), negated=True)
        if text == "-" and s.peek(1).startswith("%"):
            s.next()
            return Reg(self._resolve(s.next()), negated=True)
        if text in "+-" or s.tokens[s.position].kind in ("int", "float"):
            return s.number()
        return self._named()

    def _named(self) -> Operand:
        s = self.s
        token = s.token()
        if token.kind != "word":
            raise PtxError(f"expected an operand, found {token.text!r}", token.line)
        name = token.text
        if name == "WARP_SZ":
            return Imm(32)
        found = self._resolve(name)
        if found in self.f.registers:
            return Reg(found)
        if _SPECIAL.match(name):
            return Reg(name, special=True)
        return Sym(found, self._trailing_offset())

    def _trailing_offset(self) -> int:
        if self.s.accept("+"):
            return self.s.integer()
        if self.s.peek() == "-":
            return self.s.integer()
        return 0

    def _vector(self) -> Vec:
        s, items = self.s, []
        s.expect("{")
        while not s.accept("}"):
            items.append(self._simple())
            s.accept(",")
        return Vec(tuple(items))

    def _address(self) -> Operand:
        s = self.s
        s.expect("[")
        base = self._simple()
        if isinstance(base, Sym):
            base, offset = Sym(base.name), base.offset
        else:
            offset = self._trailing_offset()
        if s.accept(","):  # tensor coordinates: kept out of the model, the opcode is refused later
            self._simple()
        s.expect("]")
        if isinstance(base, (Reg, Sym, Imm)) and not isinstance(base, FloatImm):
            return Addr(base, offset)
        raise s.error("an address that is neither register, symbol nor number")
