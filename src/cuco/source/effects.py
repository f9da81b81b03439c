"""What library calls do on the walked path: launches, communication, allocation, copies, windows, groups,
clocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from cuco.source.clang_ast import Node
from cuco.source.graph import Edge
from cuco.source.launches import Launches
from cuco.source.nccl_calls import (
    ALLOCATE_INTO,
    CLOCKS,
    COMMUNICATION,
    COPIES,
    FILLS,
    HOST_ALLOCATORS,
    LAUNCHES,
    Shape,
    strip_profiling,
)
from cuco.source.trail import Timing
from cuco.source.values import Callee, Event, Slot, Value


class Effects(Launches):
    """Library calls by name. Unknown functions have no effect on what is recorded."""

    # ---- entry points ----------------------------------------------------------------------------

    def api_call(self, name: str, node: Node) -> Value | None:
        """A direct call of a library function; None where the name means nothing here."""
        name = strip_profiling(name)
        if not self._known(name):
            return None
        return self._perform(name, node, node.arguments, [self.eval(argument) for argument in node.arguments])

    def api_values(self, name: str, node: Node, arguments: Sequence[Value]) -> Value | None:
        """The same through a function pointer, whose arguments are known as values only."""
        name = strip_profiling(name)
        if not self._known(name):
            return None
        given = node.arguments
        nodes = given[len(given) - len(arguments) :] if len(given) >= len(arguments) else []
        return self._perform(name, node, nodes, list(arguments))

    @staticmethod
    def _known(name: str) -> bool:
        return name in _HANDLERS or name in CLOCKS or _communication(name) is not None

    def _perform(self, name: str, node: Node, nodes: Sequence[Node], values: list[Value]) -> Value:
        if _communication(name) is not None:
            return self._communicate(name, node, nodes, values)
        if name in CLOCKS:
            return self._clock(name, node, values)
        handler = _HANDLERS[name]
        result = handler(self, name, node, nodes, values)
        return result if result is not None else Value(node.text)

    # ---- communication ---------------------------------------------------------------------------

    def _communicate(self, name: str, node: Node, nodes: Sequence[Node], values: list[Value]) -> Value:
        shape = _communication(name)
        assert shape is not None
        number = self._counts.get(shape.op, 0)
        self._counts[shape.op] = number + 1
        send, send_offset = self._side(shape.send, nodes, values)
        recv, recv_offset = self._side(shape.recv, nodes, values)
        comm, stream = self._shown(shape.comm, nodes, values), self._stream(shape.stream, nodes, values)
        self.trail.comms.setdefault(comm or "", None)
        self.trail.streams.setdefault(stream, None)
        edge = Edge(
            id=f"{shape.op.lower()}_{number}",
            op=shape.op,
            send=send,
            recv=recv,
            count=self._shown(shape.count, nodes, values),
            dtype=self._constant(shape.dtype, nodes, values),
            peer=self._shown(shape.peer, nodes, values),
            comm=comm,
            stream=stream,
            line=node.line,
            function=self.function_name,
            group=self._group,
            loop=bool(self.loops),
            root=self._shown(shape.root, nodes, values),
            reduction=self._constant(shape.reduction, nodes, values),
            send_offset=send_offset,
            recv_offset=recv_offset,
            conditional=bool(self.conditions),
            file=node.file,
            call_lines=self.frame.call_lines,
            offset=node.span[0],
            loops=tuple(self.loop_heads),
        )
        self.trail.edges.append(edge)
        reads = values[shape.send].buffers if shape.send is not None and shape.send < len(values) else ()
        writes = values[shape.recv].buffers if shape.recv is not None and shape.recv < len(values) else ()
        whole = recv_offset is None and not self.loops
        self._event(Event("edge", edge.id, node.line, reads, writes, whole, file=node.file))
        return Value(node.text)

    def _side(
        self, position: int | None, nodes: Sequence[Node], values: Sequence[Value]
    ) -> tuple[str | None, str | None]:
        """Name of the buffer at one end, and where in it."""
        if position is None or position >= len(values):
            return None, None
        value = values[position]
        if not value.buffers:
            return self._shown(position, nodes, values), None
        return "|".join(memory.name for memory in value.buffers), value.offset or (
            "?" if value.shifted else None
        )

    def _group_start(self, name: str, node: Node, nodes: Sequence[Node], values: list[Value]) -> None:
        if self._group_depth == 0:
            self._groups += 1
            self._group = self._groups - 1
        self._group_depth += 1

    def _group_end(self, name: str, node: Node, nodes: Sequence[Node], values: list[Value]) -> None:
        self._group_depth = max(0, self._group_depth - 1)
        if self._group_depth == 0:
            self._group = None

    # ---- memory ----------------------------------------------------------------------------------

    def _allocate(self, name: str, node: Node, nodes: Sequence[Node], values: list[Value]) -> None:
        where, size = ALLOCATE_INTO[name]
        slot = values[where].target if where < len(values) else None
        if slot is None and where < len(nodes):
            slot = self._pointer_array(nodes[where])
        if slot is None:
            return
        text = self._shown(size, nodes, values)
        for old in self.store.get(slot.key, Value("")).buffers:
            if old.allocator == name and old.name == slot.text:
                return
        memory = self.new_memory(
            slot.text,
            name,
            size=text,
            line=node.line,
            depth=0 if slot.key.startswith("field:") else self.frame.depth,
        )
        memory.device = name not in HOST_ALLOCATORS
        self.assign(slot, Value(slot.text, (memory,)), weak=bool(self.conditions))

    def _pointer_array(self, node: Node) -> Slot | None:
        """``(void **)pointers + i``: an element of an array of pointers."""
        inner = node.strip()
        while inner.kind == "BINARY_OPERATOR" and inner.operator in ("+", "-"):
            inner = inner.expressions[0].strip()
        base = self.slot(inner)
        return Slot(f"{base.key}[]", base.text, True) if base else None

    def _cuco_alloc(self, name: str, node: Node, nodes: Sequence[Node], values: list[Value]) -> Value | None:
        memory = self.new_memory(
            "alloc",
            "cuco_alloc",
            size=self._shown(1, nodes, values),
            line=node.line,
            depth=self.frame.depth + 1,
        )
        return Value(node.text, (memory,))

    def _copy(self, name: str, node: Node, nodes: Sequence[Node], values: list[Value]) -> None:
        to, source, _, kind = COPIES[name]
        direction = (self._shown(kind, nodes, values) or "") if kind >= 0 else ""
        writes, reads = values[to].buffers, values[source].buffers
        event = {"cudaMemcpyHostToDevice": "upload", "cudaMemcpyDeviceToHost": "download"}.get(
            direction, "copy"
        )
        whole = not values[to].shifted and not self.loops
        self._event(
            Event(
                event,
                "memcpy",
                node.line,
                () if event == "upload" else reads,
                () if event == "download" else writes,
                whole,
                file=node.file,
            )
        )

    def _fill(self, name: str, node: Node, nodes: Sequence[Node], values: list[Value]) -> None:
        self._event(
            Event("fill", "memset", node.line, (), values[0].buffers, not values[0].shifted, file=node.file)
        )

    def _window(self, name: str, node: Node, nodes: Sequence[Node], values: list[Value]) -> None:
        if len(values) > 1:
            self.trail.windows.append((node, values[1], nodes[1] if len(nodes) > 1 else None))
        slot = values[3].target if len(values) > 3 else None
        if slot is None:
            return
        for memory in values[1].buffers:
            if slot.text not in memory.windows:
                memory.windows.append(slot.text)
        self.assign(slot, replace(values[1], text=slot.text, window=True, target=None))

    # ---- clocks ----------------------------------------------------------------------------------

    def _clock(self, name: str, node: Node, values: list[Value]) -> Value:
        self._timing("clock", name, node)
        return Value(node.text)

    def _record_event(self, name: str, node: Node, nodes: Sequence[Node], values: list[Value]) -> None:
        self._timing("record", self._shown(0, nodes, values) or "", node)

    def _timing(self, kind: str, key: str, node: Node) -> None:
        line = self.frame.call_lines[0] if self.frame.call_lines else node.line
        self.trail.timings.append(Timing(kind, key, line, len(self.trail.events), self.root, node.file))

    def _elapsed(self, name: str, node: Node, nodes: Sequence[Node], values: list[Value]) -> None:
        first, second = self._shown(1, nodes, values), self._shown(2, nodes, values)
        self.trail.elapsed.append((first or "", second or ""))

    def _symbol(self, name: str, node: Node, nodes: Sequence[Node], values: list[Value]) -> Value | None:
        """``dlsym`` with a known name."""
        declared = self.unit.function(values[1].literal or "") if len(values) > 1 else None
        return Value(node.text, callee=Callee(declared, declared.spelling)) if declared is not None else None

    def _thread(self, name: str, node: Node, nodes: Sequence[Node], values: list[Value]) -> None:
        position = 2 if name == "pthread_create" else 1
        callee = values[position].callee if position < len(values) else None
        if callee is not None:
            self._enter_callee(callee, node, values[position + 1 : position + 2])

    def _enter_callee(self, callee: Callee, node: Node, arguments: list[Value]) -> Value:
        raise NotImplementedError

    def lookup_by_name(self, node: Node, declared: Node, arguments: Sequence[Value]) -> Value | None:
        """A helper that finds a workload buffer by its name: it gets a string and reads cuco_ctx's
        buffers."""
        literal = next((value.literal for value in arguments if value.literal is not None), None)
        body = declared if declared.kind == "LAMBDA_EXPR" else declared.definition
        if literal is None or body is None or not _reads_buffers(body):
            return None
        memory = self.cuco_buffer(literal)
        result = (
            body.cursor.result_type.get_canonical().spelling
            if declared.kind != "LAMBDA_EXPR"
            else node.canonical_type
        )
        if "cuco_buffer" in result or "*" not in result:
            return Value(node.text, descriptors=(memory,))
        return Value(memory.name, (memory,))


def _reads_buffers(body: Node) -> bool:
    return any(part.kind == "MEMBER_REF_EXPR" and part.member_name == "buffers" for part in body.walk())


def _communication(name: str) -> Shape | None:
    """The shape of a communication call; the Config forms take one more argument at the end."""
    return COMMUNICATION.get(name) or COMMUNICATION.get(name.removesuffix("Config"))


_Handler = Callable[[Effects, str, Node, Sequence[Node], list[Value]], Value | None]
_HANDLERS: dict[str, _Handler] = {
    **dict.fromkeys(ALLOCATE_INTO, Effects._allocate),
    **dict.fromkeys(COPIES, Effects._copy),
    **dict.fromkeys(FILLS, Effects._fill),
    **dict.fromkeys(LAUNCHES, Effects._launch_api),
    "alloc": Effects._cuco_alloc,
    "ncclCommWindowRegister": Effects._window,
    "ncclGroupStart": Effects._group_start,
    "ncclGroupEnd": Effects._group_end,
    "cudaEventRecord": Effects._record_event,
    "cudaEventRecordWithFlags": Effects._record_event,
    "cudaEventElapsedTime": Effects._elapsed,
    "cudaEventElapsedTime_v2": Effects._elapsed,
    "pthread_create": Effects._thread,
    "dlsym": Effects._symbol,
}
