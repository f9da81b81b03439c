"""Kernel launches on the walked path, in triple angle brackets and through the API, with what they are
given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cuco.source.clang_ast import Node
from cuco.source.expressions import leads_to_data
from cuco.source.graph import Launch
from cuco.source.nccl_calls import LAUNCHES
from cuco.source.trail import LaunchSite, Recorder
from cuco.source.values import CAPTURED, Callee, Event, Value


class Launches(Recorder):
    """Launch sites to records."""

    def launch(self, node: Node, configuration: Node) -> Value:
        """A launch in triple angle brackets."""
        config = configuration.arguments
        held = self.eval(node.expressions[0])
        declared = node.referenced
        callee = held.callee
        if (
            callee is None
            and declared is not None
            and declared.kind in ("FUNCTION_DECL", "FUNCTION_TEMPLATE")
        ):
            callee = Callee(declared, declared.spelling)
        given = [
            argument
            for argument in node.arguments
            if argument.spelling != configuration.spelling or argument.span != configuration.span
        ]
        values = [self._by_value(argument, self.eval(argument)) for argument in given]
        texts = [self._config_text(one, configuration) for one in config]
        stream_value = self.eval(config[3]) if len(config) > 3 and config[3].span != (0, 0) else Value("0")
        stream = (
            stream_value.text
            if len(config) > 3 and config[3].strip().kind == "DECL_REF_EXPR"
            else (texts[3] if len(texts) > 3 else "0")
        )
        self._launched(
            node,
            callee,
            texts[0],
            texts[1],
            texts[2] if len(texts) > 2 and texts[2] else "0",
            stream or "0",
            [self._argument_text(one, node) for one in given],
            values,
            "<<<>>>",
            self._sizes(config[0]),
            self._sizes(config[1]),
            held.text,
            (self._constants(config[0]), self._constants(config[1])),
        )
        return Value(node.text)

    def _config_text(self, node: Node, call: Node) -> str:
        if node.span == (0, 0):
            return ""
        inner = node.strip()
        if (
            inner.kind == "CALL_EXPR"
            and inner.spelling == "dim3"
            and len(inner.arguments)
            and (len([one for one in inner.arguments if one.span != (0, 0)]) == 1)
        ):
            inner = inner.arguments[0].strip()
        return self._argument_text(inner, call)

    def _sizes(self, node: Node) -> tuple[str, str, str] | None:
        """x, y and z of a grid or block expression, through the declaration of a dim3 variable."""
        inner = self._size_expression(node)
        if inner is None:
            return None
        if inner.kind in ("CALL_EXPR", "INIT_LIST_EXPR") and inner.canonical_type.endswith("dim3"):
            parts = inner.arguments if inner.kind == "CALL_EXPR" else inner.expressions
            shown = [self.text(one) if one.span != (0, 0) else "1" for one in parts]
            shown = [one or "1" for one in shown] + ["1", "1", "1"]
            return shown[0], shown[1], shown[2]
        return self.text(inner), "1", "1"

    def _size_expression(self, node: Node) -> Node | None:
        """The expression that makes a grid or block size, through dim3 variables and parameters."""
        inner = node.strip()
        known = self.eval(inner).node if inner.canonical_type.endswith("dim3") else None
        if known is not None:
            return known
        while (
            inner.kind == "CALL_EXPR"
            and inner.spelling == "dim3"
            and len(inner.arguments) == 1
            and (inner.arguments[0].canonical_type.endswith("dim3"))
        ):
            inner = inner.arguments[0].strip()
        declared = inner.referenced
        if (
            inner.kind == "DECL_REF_EXPR"
            and declared is not None
            and declared.canonical_type.endswith("dim3")
        ):
            made = next(
                (
                    one.strip()
                    for one in declared.expressions
                    if one.strip().kind in ("CALL_EXPR", "INIT_LIST_EXPR")
                ),
                None,
            )
            if made is None:
                return None
            inner = made
        return inner

    def _constants(self, node: Node) -> tuple[int | None, ...]:
        """x, y and z of a size where they are integer constants; none for a variable that is changed
        later."""
        inner = self._size_expression(node)
        if inner is None or _changed_later(node):
            return ()
        if inner.kind in ("CALL_EXPR", "INIT_LIST_EXPR") and inner.canonical_type.endswith("dim3"):
            parts = inner.arguments if inner.kind == "CALL_EXPR" else inner.expressions
            return tuple(1 if one.span == (0, 0) else one.constant for one in parts)
        return (inner.constant,)

    def _launched(
        self,
        node: Node,
        callee: Callee | None,
        grid: str,
        block: str,
        shared: str,
        stream: str,
        texts: Sequence[str],
        values: Sequence[Value],
        via: str,
        grid_size: tuple[str, str, str] | None,
        block_size: tuple[str, str, str] | None,
        shown: str,
        constants: tuple[tuple[int | None, ...], tuple[int | None, ...]] = ((), ()),
    ) -> None:
        kernel = callee.node if callee else None
        name = kernel.spelling if kernel is not None else shown
        number = self._counts.get(f"launch {name}", 0)
        self._counts[f"launch {name}"] = number + 1
        self.trail.streams.setdefault(stream, None)
        launch = Launch(
            line=node.line,
            grid=grid,
            block=block,
            stream=stream,
            args=tuple(texts),
            id=f"{name}_{number}",
            shared=shared,
            grid_size=grid_size,
            block_size=block_size,
            via=via,
            function=self.function_name,
            loop=bool(self.loops),
            conditional=bool(self.conditions),
            cooperative=via == "cudaLaunchCooperativeKernel",
            buffers=tuple(tuple(memory.name for memory in value.reachable) for value in values),
            call_lines=self.frame.call_lines,
            file=node.file,
            offset=node.span[0],
            loops=tuple(self.loop_heads),
        )
        index = self._event(Event("launch", name, node.line, file=node.file))
        self.trail.launches.append(LaunchSite(kernel, name, launch, tuple(values), index, *constants, node))
        if kernel is None:
            self.trail.notes.setdefault(
                f"line {node.line}: the kernel launched through `{shown}` is not known", None
            )

    def _by_value(self, node: Node, value: Value) -> Value:
        """An argument with the fields of a struct, or the pointers that a lambda captures."""
        inner = node.strip()
        while (
            inner.kind == "CALL_EXPR"
            and inner.referenced is not None
            and (inner.referenced.kind == "CONSTRUCTOR" and len(inner.arguments) == 1)
        ):
            inner = inner.arguments[0].strip()
        if value.callee is not None and value.callee.node.kind == "LAMBDA_EXPR":
            captured = [
                self.eval(part)
                for part in value.callee.node.walk()
                if part.kind == "DECL_REF_EXPR" and leads_to_data(part)
            ]
            return replace(value, fields=tuple((CAPTURED, one) for one in captured if one.buffers))
        slot = self.slot(inner)
        if value.buffers or slot is None:
            return value
        start = f"{slot.key}."
        fields = tuple((key[len(start) :], one) for key, one in self.store.items() if key.startswith(start))
        return replace(value, fields=tuple(pair for pair in fields if pair[1].buffers))

    def _launch_api(self, name: str, node: Node, nodes: Sequence[Node], values: list[Value]) -> None:
        position = LAUNCHES[name]
        callee = values[position].callee if position < len(values) else None
        shown = self._shown(position, nodes, values) or "?"
        if name in ("cudaLaunchKernelEx", "cudaLaunchKernelExC"):
            grid, block = (self._config_field(values[0], nodes, one) for one in ("gridDim", "blockDim"))
            shared, stream = (
                self._config_field(values[0], nodes, one).text for one in ("dynamicSmemBytes", "stream")
            )
            if name == "cudaLaunchKernelEx":
                texts, given = [self.text(one) for one in nodes[2:]], values[2:]
            else:
                texts, given = self._argument_array(nodes, values, 2)
            sizes = [self._sizes(one.node) if one.node is not None else None for one in (grid, block)]
            self._launched(
                node,
                callee,
                grid.text,
                block.text,
                shared,
                stream,
                texts,
                given,
                name,
                sizes[0],
                sizes[1],
                shown,
                (
                    self._constants(grid.node) if grid.node is not None else (),
                    self._constants(block.node) if block.node is not None else (),
                ),
            )
            return
        texts, given = self._argument_array(nodes, values, 3)
        self._launched(
            node,
            callee,
            self._config_text(nodes[1], node),
            self._config_text(nodes[2], node),
            self._shown(4, nodes, values) or "0",
            self._stream(5, nodes, values),
            texts,
            given,
            name,
            self._sizes(nodes[1]),
            self._sizes(nodes[2]),
            shown,
            (self._constants(nodes[1]), self._constants(nodes[2])),
        )

    def _config_field(self, config: Value, nodes: Sequence[Node], name: str) -> Value:
        """What a cudaLaunchConfig_t's field was last set to."""
        if config.target is not None:
            base = config.target.key
        else:
            slot = self.slot(nodes[0])
            base = slot.key if slot else ""
        held = self.store.get(f"{base}.{name}")
        return held or Value("0" if name in ("stream", "dynamicSmemBytes") else "1")

    def _argument_array(
        self, nodes: Sequence[Node], values: list[Value], position: int
    ) -> tuple[list[str], list[Value]]:
        """The arguments behind a ``void *args[]``: what each element is the address of."""
        if position >= len(values):
            return [], []
        texts, found = [], []
        for item in values[position].items or ():
            slot = item.target
            value = self.store.get(slot.key) if slot else None
            texts.append(slot.text if slot else item.text)
            found.append(value or replace(item, target=None))
        return texts, found


def _changed_later(node: Node) -> bool:
    """Whether the dim3 variable that an expression names is assigned to anywhere in its function."""
    named = node.strip()
    while named.kind == "CALL_EXPR" and len(named.arguments) == 1:
        named = named.arguments[0].strip()
    declared = named.referenced
    if named.kind != "DECL_REF_EXPR" or declared is None:
        return False
    top = node
    while top.parent is not None and top.kind != "LAMBDA_EXPR":
        top = top.parent
    for part in top.walk():
        if (
            part.operator == "="
            or part.kind == "COMPOUND_ASSIGNMENT_OPERATOR"
            or part.spelling == "operator="
        ):
            target = part.expressions[0].strip() if part.expressions else part
            base = (
                target.expressions[0].strip()
                if target.kind == "MEMBER_REF_EXPR" and target.expressions
                else target
            )
            if (
                base.kind == "DECL_REF_EXPR"
                and base.referenced is not None
                and base.referenced.key == declared.key
            ):
                return True
    return False
