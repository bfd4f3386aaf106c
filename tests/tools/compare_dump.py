#!/usr/bin/env python3
"""Whether a dump of ours answers what a correct reader must: compare_dump.py GOT EXPECTED.

The rule: where the recorded answers of the reference are right, ours are equal; where it failed or misread although the
data is there, the true value or shape recorded beside counts; where it had no value and there is none, we have none
either; where it could not open a trial, we cannot. Prints what differs, at most 20 lines, and exits 1 if anything does.
"""

import json
import sys

COLLECTION_KEYS = ("include_regex", "reduction_config", "save_config", "save_histogram", "saved_tensors")
VALUE_KEYS = ("dtype", "shape", "size", "sha256")


class Comparison:
    def __init__(self):
        self.differences = []
        self.compared = 0

    def equal(self, where, got, wanted):
        self.compared += 1
        if got != wanted:
            self.differences.append(f"{where}: got {json.dumps(got)[:100]}, wanted {json.dumps(wanted)[:100]}")

    def value(self, where, got, wanted):
        """wanted: the recorded object of a value that can be read."""
        if not isinstance(got, dict) or got.get("status") != "ok":
            self.differences.append(f"{where}: cannot be read: {json.dumps(got)[:200]}")
            return
        for key in VALUE_KEYS:
            self.equal(f"{where}.{key}", got.get(key), wanted.get(key))
        if "data" in wanted and "data" in got:
            self.equal(f"{where}.data", got["data"], wanted["data"])

    def entry(self, where, got, wanted):
        self.equal(f"{where}.mode", [got["mode"], got["mode_step"]], [wanted["mode"], wanted["mode_step"]])
        shape = wanted.get("true_shape", wanted.get("shape"))
        if isinstance(shape, list):
            self.equal(f"{where}.shape", got.get("shape"), shape)
        value = wanted.get("true_value", wanted.get("value"))
        if value and value.get("status") == "ok":
            self.value(where, got.get("value"), value)
        else:
            status = (got.get("value") or {}).get("status")
            self.compared += 1
            if status == "ok":
                self.differences.append(f"{where}: has a value where there is none")
        for op, reduction in (wanted.get("reductions") or {}).items():
            if reduction.get("status") == "ok":
                self.value(f"{where}.{op}", (got.get("reductions") or {}).get(op), reduction)

    def tensor(self, got, wanted):
        name = wanted["name"]
        self.equal(f"{name}.original_name", got.get("original_name"), wanted.get("original_name"))
        ours = {(entry["global_step"], entry["worker"]): entry for entry in got["entries"]}
        theirs = {(entry["global_step"], entry["worker"]): entry for entry in wanted["entries"]}
        self.equal(f"{name}: entries", sorted(ours), sorted(theirs))
        for key in sorted(ours.keys() & theirs.keys()):
            self.entry(f"{name} at {key[0]} of {key[1]}", ours[key], theirs[key])

    def trial(self, got, wanted):
        for key, value in wanted.items():
            if isinstance(value, dict) and key != "tensor_names_by_global_step":
                for mode, inner in value.items():
                    self.equal(f"trial.{key}.{mode}", got.get(key, {}).get(mode, []), inner)
            else:
                self.equal(f"trial.{key}", got.get(key), value)

    def document(self, got, wanted):
        if "open" in wanted:
            self.equal("opens", "open" not in got, False)
            return
        if "open" in got:
            self.differences.append(f"does not open: {json.dumps(got['open'])[:300]}")
            return
        self.trial(got["trial"], wanted["trial"])
        for name, collection in wanted["collections"].items():
            for key in COLLECTION_KEYS:
                self.equal(f"collection {name}.{key}", got["collections"].get(name, {}).get(key), collection.get(key))
        ours = {tensor["name"]: tensor for tensor in got["tensors"]}
        self.equal("names of tensors", sorted(ours), sorted(tensor["name"] for tensor in wanted["tensors"]))
        for tensor in wanted["tensors"]:
            if tensor["name"] in ours:
                self.tensor(ours[tensor["name"]], tensor)


def compare(got, wanted):
    comparison = Comparison()
    comparison.document(got, wanted)
    return comparison


def main():
    with open(sys.argv[1], encoding="utf-8") as got, open(sys.argv[2], encoding="utf-8") as wanted:
        comparison = compare(json.load(got), json.load(wanted))
    for difference in comparison.differences[:20]:
        print(difference)
    print(f"{len(comparison.differences)} differences in {comparison.compared} comparisons")
    return 1 if comparison.differences else 0


if __name__ == "__main__":
    sys.exit(main())
