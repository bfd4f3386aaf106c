#!/usr/bin/env python3
"""Opens every trial of interop_writer with the real smdebug and compares all it reads with what was written: every
value and reduction bit for bit, steps, modes, workers, collections; nothing missing, nothing more. Damages copies of
a trial to show that a difference is seen.

Runs in the environment `smdebug` (make env NAME=smdebug)."""

import argparse
import hashlib
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
OPTIONS = None

# Before smdebug is imported: no waiting for files that will not come, no log.
os.environ["SMDEBUG_LOG_LEVEL"] = "off"
os.environ["SMDEBUG_TRAINING_END_DELAY_REFRESH"] = "0"
os.environ["SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT"] = "0"
try:
    import numpy as np
    from smdebug import modes
    from smdebug.trials import create_trial
except ImportError as missing:
    print(f"interop_test: {missing}; make env NAME=smdebug makes the environment for it", file=sys.stderr)
    sys.exit(1 if os.environ.get("CI") == "true" else SKIPPED)

MODES = [modes.TRAIN, modes.EVAL, modes.PREDICT, modes.GLOBAL]
RELATIVE_TOLERANCE = {"float32": 1e-6, "float64": 1e-12}


# ---- what smdebug reads

def describe(value):
    """(dtype, shape, bytes or texts) of what smdebug returned."""
    array = np.asarray(value)
    if array.dtype.kind in "US":
        return "string", list(array.shape), [str(text) for text in array.reshape(-1)]
    return array.dtype.name, list(array.shape), np.ascontiguousarray(array).tobytes()


def attempt(read):
    try:
        return describe(read())
    except Exception as error:  # smdebug fails with whatever it stumbles over
        return "error", type(error).__name__, str(error).split("\n")[0]


def read_trial(directory):
    """All that smdebug has to say about a trial, by (name, step, worker)."""
    trial = create_trial(str(directory), name="trial")
    found = {"values": {}, "reductions": {}, "shapes": {}, "workers": sorted(trial.workers()), "collections": {}}
    steps = trial.steps(mode=modes.GLOBAL, show_incomplete_steps=True)
    found["steps"] = [[step, trial.mode_modestep(step)[0].name, trial.mode_modestep(step)[1]] for step in steps]
    found["steps_of_mode"] = {mode.name: trial.steps(mode=mode, show_incomplete_steps=True) for mode in MODES}
    for name in trial.tensor_names():
        tensor = trial.tensor(name)
        for step in tensor.steps(mode=modes.GLOBAL, show_incomplete_steps=True):
            mode, mode_step = trial.mode_modestep(step)
            for worker in tensor.workers(step):
                key = (name, step, worker)
                entry = tensor._step(step, worker=worker)
                if entry.location is not None:
                    found["values"][key] = attempt(lambda: tensor.value(step, worker=worker))
                    again = attempt(lambda: tensor.value(mode_step, mode=mode, worker=worker))
                    if again != found["values"][key]:
                        found["values"][key] = ("error", "by its mode step it is", again)
                elif entry.shape is not None:
                    found["shapes"][key] = list(tensor.shape(step, worker=worker))
                for operation, is_abs in entry.reduction_locations():
                    full = ("abs_" if is_abs else "") + operation
                    found["reductions"][(*key, full)] = attempt(
                        lambda: tensor.reduction_value(step, operation, worker=worker, abs=is_abs))
    for name in trial.collections():
        found["collections"][name] = sorted(trial.tensor_names(collection=name))
    return found


# ---- what it has to read

def blob_of(blob, item):
    """The bytes of a value; of texts each followed by a zero byte."""
    if item["dtype"] == "string":
        return b"".join(text.encode() + b"\0" for text in item["texts"])
    return blob[item["offset"]:item["offset"] + item["length"]]


def decode(blob, item):
    """The elements of an expectation as float64 or exact integers, in a flat array; bytes as they are."""
    raw = blob[item["offset"]:item["offset"] + item["length"]]
    if item["dtype"] == "bfloat16":
        return np.frombuffer(raw, dtype=np.uint16).astype(np.uint32).__lshift__(16).view(np.float32)
    return np.frombuffer(raw, dtype=item["dtype"])


def reduced(elements, operation):
    """The definition of a reduction, in float64 or exact integers; None where it is not defined."""
    is_integer = elements.dtype.kind in "iub"
    values = [int(x) if is_integer else float(x) for x in elements]
    if operation.startswith("abs_"):
        values, operation = [abs(x) for x in values], operation[4:]
    if any(math.isnan(x) for x in values):
        return math.nan
    count = len(values)
    add = sum if is_integer else math.fsum
    if operation in ("min", "max"):
        return {"min": min, "max": max}[operation](values) if values else None
    if operation == "sum":
        return add(values)
    if operation == "prod":
        return math.prod(values)
    if operation == "l1":
        return float(add(abs(x) for x in values))
    if operation == "l2":
        return math.sqrt(math.fsum(x * x for x in values))
    if not values:
        return math.nan
    if operation == "median":
        ordered = sorted(values)
        return (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    mean = add(values) / count
    variance = math.fsum((x - mean) ** 2 for x in values) / count
    return {"mean": mean, "variance": variance, "std": math.sqrt(variance)}[operation]


def reduced_dtype(dtype, operation, is_widened):
    """The type of a reduction's result, as smdebug sees it; empty if it cannot read it."""
    kind = "float" if "float" in dtype else "unsigned" if dtype[0] == "u" else "bool" if dtype == "bool" else "signed"
    base = operation.replace("abs_", "")
    if kind == "float":
        return "float64" if dtype == "float64" else "float32"
    if base in ("mean", "std", "variance", "median", "l1", "l2"):
        return "float64"
    if base in ("sum", "prod"):
        result = "uint64" if kind == "unsigned" else "int64"
        return "int64" if result == "uint64" and is_widened else result
    if is_widened:
        return {"int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64", "uint64": "int64"}.get(dtype, dtype)
    return dtype


def compare_reductions(found, expected, blob, is_widened):
    problems, seen = [], set()
    for item in expected["reductions"]:
        elements = decode(blob, item)
        for operation in item["operations"]:
            value = reduced(elements, operation)
            key = (item["name"], item["step"], item["worker"], operation)
            if value is None:
                continue
            seen.add(key)
            got = found["reductions"].get(key)
            if got is None:
                problems.append(f"reduction {key} is missing")
                continue
            dtype = reduced_dtype(item["dtype"], operation, is_widened)
            if got[0] != dtype or got[1] != [1]:
                problems.append(f"reduction {key} is {got[:2]}, expected {dtype} [1]")
                continue
            number = np.frombuffer(got[2], dtype=dtype)[0]
            if item["exact"] and not (isinstance(value, float) and math.isnan(value)):
                is_equal = number.tobytes() == np.array([value], dtype=dtype).tobytes()
            elif isinstance(value, float) and math.isnan(value):
                is_equal = bool(np.isnan(number))
            else:
                is_equal = math.isclose(number, value, rel_tol=RELATIVE_TOLERANCE[dtype], abs_tol=1e-30)
            if not is_equal:
                problems.append(f"reduction {key} is {number!r}, expected {value!r}")
    problems += [f"reduction {key} was not written" for key in found["reductions"] if key not in seen]
    return problems


def compare_values(found, expected, blob):
    problems, seen = [], set()
    for item in expected["values"]:
        key = (item["name"], item["step"], item["worker"])
        seen.add(key)
        got = found["values"].get(key)
        if got is None:
            problems.append(f"value {key} is missing")
        elif item["unreadable"]:
            if got[0] != "error":
                problems.append(f"value {key} of type {item['dtype']} was read as {got[0]}")
        elif item["dtype"] == "string":
            if got != ("string", item["shape"], item["texts"]):
                problems.append(f"value {key} is {got}, expected {item['texts']}")
        else:
            raw = blob[item["offset"]:item["offset"] + item["length"]]
            if got[:2] != (item["dtype"], item["shape"]):
                problems.append(f"value {key} is {got[:2]}, expected {item['dtype']} {item['shape']}")
            elif got[2] != raw:
                problems.append(f"value {key} differs in its bytes")
    return problems + [f"value {key} was not written" for key in found["values"] if key not in seen]


def compare(directory, expected, blob):
    """Every difference between what smdebug reads and what was written; empty if there is none."""
    try:
        found = read_trial(directory)
    except Exception as error:
        return [f"smdebug cannot open it: {type(error).__name__}: {error}"]
    problems = compare_values(found, expected, blob)
    problems += compare_reductions(found, expected, blob, is_widened=expected["directory"].startswith("widened"))
    shapes = {(item["name"], item["step"], item["worker"]): item["shape"] for item in expected["shapes"]}
    if found["shapes"] != shapes:
        problems.append(f"shapes are {found['shapes']}, expected {shapes}")
    steps = sorted(expected["steps"])
    if found["steps"] != steps:
        problems.append(f"steps are {found['steps']}, expected {steps}")
    for mode in MODES:
        wanted = [s if mode == modes.GLOBAL else ms for s, name, ms in steps if mode in (modes.GLOBAL, modes[name])]
        if found["steps_of_mode"][mode.name] != wanted:
            problems.append(f"steps of {mode.name} are {found['steps_of_mode'][mode.name]}, expected {wanted}")
    if found["workers"] != expected["workers"]:
        problems.append(f"workers are {found['workers']}, expected {expected['workers']}")
    for name, members in expected["collections"].items():
        if found["collections"].get(name) != sorted(members):
            problems.append(f"collection {name} has {found['collections'].get(name)}, expected {sorted(members)}")
    return problems


# ---- what our own reader says about the same trial

def dumped(directory):
    done = subprocess.run([OPTIONS.tornasole, "dump", str(directory), "--json"], capture_output=True, text=True,
                          timeout=600, check=True)
    return json.loads(done.stdout)


def digest(value):
    """The sha256 of a dump, of what smdebug read."""
    if value[0] == "string":
        return hashlib.sha256(b"".join(text.encode() + b"\0" for text in value[2])).hexdigest()
    return hashlib.sha256(value[2]).hexdigest()


def compare_with_dump(found, dump, misread):
    """Where our dump and smdebug disagree. `misread`: keys of values that smdebug cannot read."""
    problems, seen = [], set()
    for tensor in dump["tensors"]:
        for entry in tensor["entries"]:
            key = (tensor["name"], entry["global_step"], entry["worker"])
            pairs = [(found["values"].get(key), entry["value"])]
            pairs += [(found["reductions"].get((*key, op)), value) for op, value in (entry["reductions"] or {}).items()]
            for theirs, ours in pairs:
                if ours["status"] != "ok" or theirs is None or theirs[0] == "error" or key in misread:
                    continue
                seen.add(key)
                dtype = "uint8" if ours["dtype"] == "int8" else ours["dtype"]  # smdebug takes the one for the other
                if (dtype, ours["shape"], ours["sha256"]) != (theirs[0], theirs[1], digest(theirs)):
                    problems.append(f"{key}: smdebug reads {theirs[:2]}, we {ours['dtype']} {ours['shape']}")
    problems += [f"{key} was not dumped" for key, value in found["values"].items()
                 if value[0] != "error" and key not in seen and key not in misread]
    if [step for step, _, _ in found["steps"]] != dump["trial"]["steps_including_incomplete"]["GLOBAL"]:
        problems.append("the steps differ")
    if dump["trial"]["global_step_to_mode_step"] != found["steps"]:
        problems.append("the modes of steps differ")
    return problems


class Interop(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        work = pathlib.Path(tempfile.mkdtemp(prefix="tornasole-interop-"))
        cls.addClassCleanup(shutil.rmtree, work)
        cls.work, cls.root = work, work / "trials"
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("SMDEBUG_", "TORNASOLE_"))}
        environment["TORNASOLE_STRICT"] = "1"
        subprocess.run([OPTIONS.writer, str(cls.root)], check=True, env=environment, timeout=900)
        cls.blob = (cls.root / "expectations.bin").read_bytes()
        cls.trials = {t["directory"]: t for t in json.loads((cls.root / "expectations.json").read_text())}

    def test_smdebug_reads_every_trial(self):
        self.assertGreaterEqual(len(self.trials), 14)
        for directory, expected in self.trials.items():
            with self.subTest(trial=directory):
                self.assertTrue(expected["steps"])
                problems = compare(self.root / directory, expected, self.blob)
                self.assertFalse(problems, f"{directory}: {len(problems)} differences:\n" + "\n".join(problems[:20]))

    def test_our_reader_and_smdebug_agree(self):
        for directory, expected in self.trials.items():
            with self.subTest(trial=directory):
                misread = {(item["name"], item["step"], item["worker"]) for item in expected["values"]
                           if item["unreadable"]}
                problems = compare_with_dump(read_trial(self.root / directory), dumped(self.root / directory), misread)
                self.assertFalse(problems, f"{directory}:\n" + "\n".join(problems[:20]))

    def test_our_reader_reads_what_was_written(self):
        """Every value, those included that smdebug cannot read."""
        values = 0
        for directory, expected in self.trials.items():
            found = {(tensor["name"], entry["global_step"], entry["worker"]): entry["value"]
                     for tensor in dumped(self.root / directory)["tensors"] for entry in tensor["entries"]}
            for item in expected["values"]:
                got = found.get((item["name"], item["step"], item["worker"]), {})
                raw = blob_of(self.blob, item)
                self.assertEqual((got.get("status"), got.get("shape")), ("ok", item["shape"]), f"{directory}: {item['name']}")
                self.assertEqual(got["sha256"], hashlib.sha256(raw).hexdigest(), f"{directory}: {item['name']}")
                values += 1
        self.assertGreater(values, 100)

    def test_the_files_and_keys_that_are_ours_are_there(self):
        """Otherwise it would mean nothing that smdebug is not disturbed by them."""
        for directory, expected in self.trials.items():
            for file in expected["files"]:
                self.assertTrue((self.root / directory / file).is_file(), f"{directory}/{file}")
            for file, text in expected["texts"]:
                self.assertIn(text, (self.root / directory / file).read_text(), f"{directory}/{file}")
            is_ended = (self.root / directory / "training_job_end.ts").exists()
            self.assertEqual(is_ended, expected["ended"], directory)

    def damaged(self, directory, file, change):
        """The differences seen in a copy of a trial one file of which was changed."""
        copy = self.work / "damaged"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.root / directory, copy)
        path = copy / file
        before = path.read_bytes()
        after = change(before)
        self.assertEqual(len(before), len(after))
        self.assertEqual(sum(a != b for a, b in zip(before, after)), 1, "one byte has to differ")
        path.write_bytes(after)
        return compare(copy, self.trials[directory], self.blob)

    def test_one_changed_byte_is_noticed(self):
        def flip_inside(text):
            """Changes the last byte of the first occurrence of a text."""
            def change(content):
                at = content.index(text) + len(text) - 1
                return content[:at] + bytes([content[at] ^ 1]) + content[at + 1:]
            return change

        event, index = "events/%012d/%012d_worker_0.tfevents", "index/000000000/%012d_worker_0.json"
        collections = "collections/000000000/worker_0_collections.json"
        w_at_19 = (19).to_bytes(8, "little")
        cases = [
            ("a byte of a value", "modes", event % (19, 19), flip_inside(b"\x22\x08" + w_at_19)),
            ("a digit of an offset", "exact_types", index % 1, flip_inside(b'"start_idx": 4')),
            ("a digit of a length", "modes", index % 19, flip_inside(b'"length": 1')),
            ("a digit of a mode step", "modes", index % 19, flip_inside(b'"mode_step": 9')),
            ("a letter of a name in the index", "modes", index % 19, flip_inside(b'"tensorname": "w')),
            ("a letter of a name in a collection", "late_names", collections, flip_inside(b'"tensor_names": ["g')),
            ("a character of a collection's name", "late_names", collections, flip_inside(b'"name": "mine')),
            ("a byte of a reduction", "reductions", event % (0, 0), flip_inside(b"\x22\x04\x00\x00\x80\xc0")),
        ]
        for what, directory, file, change in cases:
            with self.subTest(changed=what):
                self.assertTrue(self.damaged(directory, file, change), f"{what} was changed and nobody noticed")

    def test_a_missing_and_an_additional_file_are_noticed(self):
        copy = self.work / "thinned"
        shutil.copytree(self.root / "modes", copy)
        index = copy / "index/000000000/000000000006_worker_0.json"
        text = index.read_text()
        index.unlink()
        self.assertTrue(compare(copy, self.trials["modes"], self.blob))
        index.write_text(text)
        self.assertFalse(compare(copy, self.trials["modes"], self.blob))
        (copy / "index/000000000/000000000007_worker_0.json").write_text(text)
        self.assertTrue(compare(copy, self.trials["modes"], self.blob))

    def test_the_examples_in_c_and_cxx_write_equal_runs(self):
        if OPTIONS.examples is None:
            self.skipTest("the examples are not built")
        runs = []
        for program in OPTIONS.examples:
            directory = self.work / pathlib.Path(program).name
            subprocess.run([program, directory], check=True, stdout=subprocess.DEVNULL, timeout=300)
            runs.append(read_trial(directory))
        self.assertEqual(runs[0], runs[1])
        names = {name for name, _, _ in runs[0]["values"]}
        self.assertEqual(names, {"weight", "loss", "scalar/final_weight"})
        self.assertEqual([step for step, _, _ in runs[0]["steps"]], [0, 2, 4, 6, 8, 9])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--writer", required=True, help="the program interop_writer")
    parser.add_argument("--tornasole", required=True, help="the command line")
    parser.add_argument("--examples", nargs=2, help="the programs tornasole_minimal and tornasole_minimal_c")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
