"""Reads an Arrow IPC file of the columns that an export writes, without Arrow: an oracle for the writer.

Written from the description of the format alone: FlatBuffers tables, nodes and buffers in the order of the schema.
"""

import struct


class Table:
    def __init__(self, data, at):
        self.data, self.at = data, at
        self.fields = at - struct.unpack_from("<i", data, at)[0]
        self.size = struct.unpack_from("<H", data, self.fields)[0]

    def place(self, slot):
        entry = 4 + 2 * slot
        offset = struct.unpack_from("<H", self.data, self.fields + entry)[0] if entry < self.size else 0
        return self.at + offset if offset else None

    def number(self, slot, form, default=0):
        place = self.place(slot)
        return default if place is None else struct.unpack_from(form, self.data, place)[0]

    def target(self, slot):
        place = self.place(slot)
        return place + struct.unpack_from("<I", self.data, place)[0]

    def table(self, slot):
        return Table(self.data, self.target(slot))

    def text(self, slot):
        at = self.target(slot)
        return self.data[at + 4 : at + 4 + struct.unpack_from("<I", self.data, at)[0]].decode()

    def tables(self, slot):
        at = self.target(slot)
        count = struct.unpack_from("<I", self.data, at)[0]
        places = [at + 4 + 4 * i for i in range(count)]
        return [Table(self.data, place + struct.unpack_from("<I", self.data, place)[0]) for place in places]

    def structs(self, slot, form):
        at = self.target(slot)
        count = struct.unpack_from("<I", self.data, at)[0]
        assert (at + 4) % 8 == 0, "structs are aligned to eight bytes"
        return [struct.unpack_from(form, self.data, at + 4 + i * struct.calcsize(form)) for i in range(count)]


def root(data):
    return Table(data, struct.unpack_from("<I", data)[0])


INT, DOUBLE, BINARY, UTF8, LIST = 2, 3, 4, 5, 12


def read_column(field, nodes, buffers):
    kind = field.number(2, "<B")
    length, nulls = nodes.pop(0)
    validity = buffers.pop(0)
    if kind == LIST:
        offsets = struct.unpack(f"<{length + 1}i", buffers.pop(0)[: 4 * (length + 1)])
        items = read_column(field.tables(5)[0], nodes, buffers)
        values = [items[a:b] for a, b in zip(offsets, offsets[1:])]
    elif kind in (BINARY, UTF8):
        offsets = struct.unpack(f"<{length + 1}i", buffers.pop(0)[: 4 * (length + 1)])
        content = buffers.pop(0)
        values = [content[a:b] for a, b in zip(offsets, offsets[1:])]
        if kind == UTF8:
            values = [value.decode() for value in values]
    else:
        values = list(struct.unpack(f"<{length}{'q' if kind == INT else 'd'}", buffers.pop(0)[: 8 * length]))
    if nulls:
        present = [validity[i // 8] >> (i % 8) & 1 for i in range(length)]
        assert present.count(0) == nulls
        values = [value if here else None for value, here in zip(values, present)]
    return values


def read_rows(path):
    """The rows, as dictionaries."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"ARROW1\0\0" and data[-6:] == b"ARROW1"
    length = struct.unpack_from("<i", data, len(data) - 10)[0]
    footer = root(data[len(data) - 10 - length : len(data) - 10])
    fields = footer.table(1).tables(1)
    rows = []
    for offset, metadata_length, body_length in footer.structs(3, "<qi4xq"):
        assert offset % 8 == 0 and metadata_length % 8 == 0
        marker, size = struct.unpack_from("<Ii", data, offset)
        assert marker == 0xFFFFFFFF and size == metadata_length - 8
        message = root(data[offset + 8 : offset + metadata_length])
        assert message.number(1, "<B") == 3 and message.number(3, "<q") == body_length
        batch = message.table(2)
        body = data[offset + metadata_length : offset + metadata_length + body_length]
        nodes = batch.structs(1, "<qq")
        buffers = [body[at : at + size] for at, size in batch.structs(2, "<qq")]
        columns = {field.text(0): read_column(field, nodes, buffers) for field in fields}
        assert not nodes and not buffers
        names = list(columns)
        rows += [dict(zip(names, row)) for row in zip(*columns.values())]
        assert len(columns[names[0]]) == batch.number(0, "<q")
    return rows
