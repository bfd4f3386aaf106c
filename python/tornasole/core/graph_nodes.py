"""A graph of named nodes in the form TensorBoard draws: the bytes of a ``GraphDef``."""

from __future__ import annotations

from typing import Iterable, NamedTuple, Sequence

_PRODUCER = 22  # of the versions of the format; what TensorBoard itself gives to graphs that are no programs


class GraphNode(NamedTuple):
    """A node: its name, with ``/`` between what it is inside of, what it does, and the nodes it gets something from."""

    name: str
    op: str
    inputs: Sequence[str] = ()


def graph_def(nodes: Iterable[GraphNode]) -> bytes:
    """The graph of these nodes; inputs that are no nodes of it are left out."""
    nodes = list(nodes)
    names = {node.name for node in nodes}
    parts = []
    for node in nodes:
        content = _text(1, node.name) + _text(2, node.op)
        content += b"".join(_text(3, name) for name in node.inputs if name in names)
        parts.append(_field(1, content))
    versions = bytes([1 << 3]) + _number(_PRODUCER)
    return b"".join(parts) + _field(4, versions)


def _text(field: int, text: str) -> bytes:
    return _field(field, text.encode())


def _field(field: int, content: bytes) -> bytes:
    """A field whose content has a length."""
    return bytes([field << 3 | 2]) + _number(len(content)) + content


def _number(value: int) -> bytes:
    """A number in groups of seven bits, low ones first."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)
