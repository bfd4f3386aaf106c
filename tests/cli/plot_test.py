#!/usr/bin/env python3
"""tornasole plot: the SVG is well formed and says what the trial says, the PNG decodes and shows the same lines."""

import os
import struct
import tempfile
import xml.etree.ElementTree
import zlib

from cli_program import FIXTURES, ProgramTest, main, strict_json

MLP = os.path.join(FIXTURES, "pytorch_mlp", "trial")
SVG = "{http://www.w3.org/2000/svg}"
FIRST_COLOUR = (0x00, 0x72, 0xB2)
ALARM = (0xC0, 0x00, 0x20)


def decode_png(data):
    """(width, height, rows of pixels): an independent reader of the little we write."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    position, header, body = 8, None, b""
    while position < len(data):
        length, name = struct.unpack(">I4s", data[position : position + 8])
        content = data[position + 8 : position + 8 + length]
        (checksum,) = struct.unpack(">I", data[position + 8 + length : position + 12 + length])
        assert checksum == zlib.crc32(name + content)
        if name == b"IHDR":
            header = struct.unpack(">IIBBBBB", content)
        elif name == b"IDAT":
            body += content
        position += 12 + length
    assert name == b"IEND"
    width, height, depth, colour, *rest = header
    assert (depth, colour, rest) == (8, 2, [0, 0, 0])
    raw = zlib.decompress(body)
    stride = 3 * width + 1
    assert len(raw) == stride * height
    rows = []
    for y in range(height):
        assert raw[y * stride] == 1  # the difference to the left
        row = bytearray(raw[y * stride + 1 : (y + 1) * stride])
        for x in range(3, len(row)):
            row[x] = (row[x] + row[x - 3]) & 0xFF
        rows.append([tuple(row[x : x + 3]) for x in range(0, len(row), 3)])
    return width, height, rows


class Pictures(ProgramTest):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def plot(self, name, trial, *arguments):
        path = os.path.join(self.directory, name)
        result = self.run_program("plot", trial, *arguments, "-o", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(os.listdir(self.directory), [name])  # no temporary file is left
        with open(path, "rb") as file:
            return file.read()

    def test_svg_has_axes_legend_and_the_points_of_the_trial(self):
        root = xml.etree.ElementTree.fromstring(self.plot("x.svg", MLP, "^Net_fc", "--stat", "l2", "--mode", "train"))
        texts = [element.text for element in root.iter(SVG + "text")]
        for name in ("Net_fc1.bias", "Net_fc1.weight", "Net_fc2.bias", "Net_fc2.weight", "step of TRAIN", "l2"):
            self.assertIn(name, texts)
        lines = [e for e in root.iter(SVG + "polyline") if len(e.get("points").split()) == 5]
        self.assertEqual(len(lines), 4)  # one with the five steps of the mode each
        ticks = [float(t) for t in texts if t and t.replace(".", "").replace("-", "").isdigit()]
        self.assertGreater(len(ticks), 8)
        # The heights of a line are those of the values, whatever the scale is.
        shown = strict_json(self.run_program("show", MLP, "Net_fc1.bias", "--stat", "l2", "--mode", "train", "--json").stdout)
        values = [y for _, y in shown["over_steps"]["points"]]
        heights = [float(p.split(",")[1]) for p in lines[0].get("points").split()]
        for i in range(1, 5):
            self.assertEqual(values[i] > values[0], heights[i] < heights[0])

    def test_what_is_not_finite_is_marked(self):
        sick = self.written("sick")
        root = xml.etree.ElementTree.fromstring(self.plot("x.svg", sick, "^loss$"))
        marks = [e for e in root.iter(SVG + "path") if e.get("stroke") == "#c00020"]
        self.assertEqual(len(marks), 2)  # an infinity and a NaN
        os.remove(os.path.join(self.directory, "x.svg"))
        _, _, rows = decode_png(self.plot("x.png", sick, "^loss$"))
        self.assertTrue(any(ALARM in row for row in rows))

    def test_png_shows_the_line_where_svg_has_it(self):
        arguments = [MLP, "^Net_fc1.weight$", "--stat", "l2"]
        root = xml.etree.ElementTree.fromstring(self.plot("x.svg", *arguments))
        os.remove(os.path.join(self.directory, "x.svg"))
        width, height, rows = decode_png(self.plot("x.png", *arguments))
        self.assertEqual((width, height), (2 * int(root.get("width")), 2 * float(root.get("height"))))
        [line] = [e for e in root.iter(SVG + "polyline") if len(e.get("points").split()) == 9]
        for point in line.get("points").split()[1:-1]:
            x, y = (round(2 * float(part)) for part in point.split(","))
            near = [rows[y + dy][x + dx] for dx in (-2, 0, 2) for dy in (-2, -1, 0, 1, 2)]
            self.assertIn(FIRST_COLOUR, near, point)
        self.assertEqual(rows[2][2], (255, 255, 255))
        ink = sum(pixel != (255, 255, 255) for row in rows for pixel in row)
        self.assertLess(ink, width * height / 10)

    def test_a_log_scale_has_powers_of_ten(self):
        root = xml.etree.ElementTree.fromstring(self.plot("x.svg", MLP, "^gradient", "--stat", "l2", "--log"))
        self.assertIn("1e-1", [e.text for e in root.iter(SVG + "text")])

    def test_many_series_are_cut_and_told(self):
        trial = os.path.join(FIXTURES, "core_types", "trial")
        path = os.path.join(self.directory, "x.svg")
        result = self.run_program("plot", trial, ".", "-o", path)
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"warning: the first 24 of \d+ series")
        with open(path, encoding="utf-8") as file:
            self.assertRegex(file.read(), r"the first 24 of \d+ series")

    def test_a_picture_that_cannot_be_written(self):
        for path, message in (("/nowhere/x.svg", "No such file"), (os.path.join(self.directory, "x.gif"), ".svg or .png")):
            result = self.run_program("plot", MLP, "Loss", "-o", path)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(message, result.stderr)
        link = os.path.join(self.directory, "y.svg.tmp")
        os.symlink(os.path.join(self.directory, "victim"), link)
        self.assertNotEqual(self.run_program("plot", MLP, "Loss", "-o", link[:-4]).returncode, 0)
        self.assertFalse(os.path.exists(os.path.join(self.directory, "victim")))

    def test_an_old_picture_is_replaced(self):
        path = os.path.join(self.directory, "x.svg")
        with open(path, "w", encoding="utf-8") as file:
            file.write("old")
        self.assertTrue(self.plot("x.svg", MLP, "Loss").startswith(b"<svg"))


if __name__ == "__main__":
    main()
