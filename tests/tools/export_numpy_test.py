#!/usr/bin/env python3
"""Exports of golden trials, read back by NumPy: every value equals that of the dump, bit for bit.

usage: export_numpy_test.py PROBE GOLDEN
"""

import csv
import hashlib
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

import numpy as np

from arrow_reader import read_rows

try:
    import pyarrow
except ImportError:
    pyarrow = None

PROBE, GOLDEN = sys.argv[1], pathlib.Path(sys.argv[2])
TRIALS = ("core_types", "core_hook", "core_mirrored", "core_workers", "pytorch_reductions", "xgboost_full", "legacy_0_7_2")


def probe(*arguments):
    done = subprocess.run([PROBE, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def expected_values(trial):
    """(tensor, reduction or None, global step, worker) -> the value object of the dump."""
    values = {}
    for tensor in probe("dump", trial, 10**9)["tensors"]:
        for entry in tensor["entries"]:
            key = (tensor["name"], entry["global_step"], entry["worker"])
            for reduction, value in [(None, entry["value"]), *entry["reductions"].items()]:
                if value["status"] == "ok":
                    values[key[0], reduction, key[1], key[2]] = value
    return values


def hash_of(array):
    if array.dtype.kind != "U":
        return hashlib.sha256(array.tobytes()).hexdigest()
    return hashlib.sha256(b"".join(text.encode() + b"\0" for text in array.ravel())).hexdigest()


def parse_number(text):
    return complex(text) if text.endswith("j") else float(text)


def same_numbers(got, wanted):
    """Numbers of a dump are numbers, [re, im] or the texts NaN, Infinity, -Infinity."""
    def plain(value):
        return complex(*map(plain, value)) if isinstance(value, list) else float(value)

    wanted = plain(wanted)
    if isinstance(got, complex) or isinstance(wanted, complex):
        got, wanted = complex(got), complex(wanted)
        return same_numbers(got.real, wanted.real) and same_numbers(got.imag, wanted.imag)
    return got == wanted or (math.isnan(got) and math.isnan(wanted))


class Exports(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="tornasole-export-")
        self.addCleanup(scratch.cleanup)
        self.out = pathlib.Path(scratch.name)

    def each_trial(self):
        for name in TRIALS:
            trial = GOLDEN / name / "trial"
            wanted = expected_values(trial)
            self.assertTrue(wanted, name)
            yield name, trial, wanted

    def check_manifest(self, manifest, wanted, load):
        found = {}
        for item in manifest["values"]:
            key = (item["tensor"], item["reduction"], item["step"], item["worker"])
            value = wanted[key]
            array = load(item["file"])
            self.assertEqual(list(array.shape), value["shape"], key)
            self.assertEqual((item["dtype"], item["shape"]), (value["dtype"], value["shape"]), key)
            self.assertEqual(array.dtype.name if array.dtype.kind != "U" else "str", item["written_as"], key)
            self.assertEqual(hash_of(array), value["sha256"], key)
            found[key] = item["file"]
        self.assertEqual(found.keys(), wanted.keys())
        self.assertEqual(len(set(found.values())), len(found))
        return found

    def test_npy(self):
        for name, trial, wanted in self.each_trial():
            target = self.out / name
            report = probe("export", trial, "npy", target)
            self.assertEqual(report["values"] + report["reductions"], len(wanted))
            manifest = json.loads((target / "manifest.json").read_text())
            files = self.check_manifest(manifest, wanted, lambda file: np.load(target / file, allow_pickle=False))
            written = {str(path.relative_to(target)) for path in target.rglob("*.npy")}
            self.assertEqual(written, set(files.values()))

    def test_npz(self):
        for name, trial, wanted in self.each_trial():
            for arguments in ([], ["--compress"]):
                target = self.out / f"{name}{len(arguments)}.npz"
                probe("export", trial, "npz", target, *arguments)
                with zipfile.ZipFile(target) as archive:
                    self.assertIsNone(archive.testzip())
                with np.load(target, allow_pickle=False) as archive:
                    manifest = json.loads(bytes(archive["manifest.json"]))
                    self.check_manifest(manifest, wanted, lambda file: archive[file.removesuffix(".npy")])

    def test_csv(self):
        for name, trial, wanted in self.each_trial():
            target = self.out / f"{name}.csv"
            probe("export", trial, "csv", target)
            found = {}
            with open(target, newline="", encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    key = (row["tensor"], row["statistic"] or None, int(row["step"]), row["worker"])
                    found.setdefault(key, []).append((row["index"], row["value"]))
            self.assertEqual(found.keys(), {key for key, value in wanted.items() if value["size"]})
            for key, rows in found.items():
                value = wanted[key]
                if key[1] is None:
                    self.assertEqual([index for index, _ in rows], [str(i) for i in range(value["size"])])
                self.check_texts([text for _, text in rows], value, key)

    def check_texts(self, texts, value, key):
        if value["dtype"] == "string":
            self.assertEqual(texts, value["data"], key)
        elif value["dtype"] == "bool":
            self.assertEqual([text == "true" for text in texts], value["data"], key)
        elif value["dtype"].startswith(("int", "uint")):
            self.assertEqual([int(text) for text in texts], value["data"], key)
        elif value["dtype"] in ("float16", "float32"):
            # The text is the shortest that reads back as the same float, not as the same double.
            array = np.array(texts, dtype=np.float32)
            self.assertTrue(np.array_equal(array, np.array(value["data"], dtype=np.float32), equal_nan=True), key)
        elif value["dtype"] == "complex64":
            numbers = [np.complex64(complex(text)) for text in texts]
            self.assertTrue(all(map(same_numbers, map(complex, numbers), value["data"])), key)
        else:
            self.assertTrue(all(map(same_numbers, map(parse_number, texts), value["data"])), key)

    def test_csv_of_statistics(self):
        target = self.out / "statistics.csv"
        probe("export", GOLDEN / "core_types" / "trial", "csv", target, "--statistics", "--regex", "^mat/float")
        with open(target, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual({row["statistic"] for row in rows}, {"min", "max", "mean", "nan"})
        self.assertTrue(all(row["tensor"].startswith("mat/float") and row["index"] == "" for row in rows))

    def test_arrow(self):
        for name, trial, wanted in self.each_trial():
            for arguments in ([], ["--binary"]):
                target = self.out / f"{name}{len(arguments)}.arrow"
                probe("export", trial, "arrow", target, *arguments)
                rows = read_rows(target)
                keys = [(row["tensor"], row["reduction"], row["step"], row["worker"]) for row in rows]
                self.assertEqual(sorted(keys, key=str), sorted(wanted, key=str))
                for key, row in zip(keys, rows):
                    self.check_row(row, wanted[key], key)
                if pyarrow is not None:
                    table = pyarrow.ipc.open_file(str(target)).read_all()
                    table.validate(full=True)
                    # As text, since NaN is not equal to itself.
                    self.assertEqual(repr(table.to_pylist()), repr(rows))

    def check_row(self, row, value, key):
        self.assertEqual((row["dtype"], row["shape"]), (value["dtype"], value["shape"]), key)
        if value["dtype"] == "string":
            self.assertEqual(row["texts"], value["data"], key)
            return
        self.assertIsNone(row["texts"])
        if "data" in row:
            self.assertEqual(hashlib.sha256(row["data"]).hexdigest(), value["sha256"], key)
            return
        numbers = row["value"]
        if value["dtype"].startswith("complex"):
            numbers = [complex(*pair) for pair in zip(numbers[::2], numbers[1::2])]
        self.assertEqual(len(numbers), value["size"], key)
        self.assertTrue(all(map(same_numbers, numbers, value["data"])), key)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
