"""Every value of the golden trials, as our decoders return it, against the values recorded beside them.

Usage: fixtures_values_test.py DUMP_PROGRAM GOLDEN_DIRECTORY. Standard library only.
"""

import hashlib
import json
import pathlib
import subprocess
import sys


def expected_values(expected):
    """Yields (key, value object) for values, reductions and shapes; the true ones go before those of the reference."""
    for tensor in expected.get("tensors", []):
        for entry in tensor["entries"]:
            place = (entry["global_step"], entry["worker"], tensor["name"])
            yield (*place, "value"), entry.get("true_value", entry.get("value"))
            for operation, value in entry.get("reductions", {}).items():
                yield (*place, operation), value


def decoded_values(program, trial):
    lines = subprocess.run([program, str(trial)], check=True, capture_output=True, text=True).stdout.splitlines()
    values = {}
    for line in lines:
        found = json.loads(line)
        if "shape_record" in found:
            continue
        name = found.get("tensor", found["name"])
        # The last record of a name counts.
        values[(found["step"], found["worker"], name, found.get("reduction", "value"))] = found
    return values


def difference(wanted, found):
    """What is wrong with a decoded value, or None."""
    if wanted is None or wanted["status"] != "ok":
        # Without a true value nothing may be readable but tensors of no elements, which the reference cannot return.
        is_empty = found is not None and found.get("hex") == ""
        return None if found is None or "error" in found or is_empty else "is readable, but should not be"
    if found is None:
        return "is missing"
    if "error" in found:
        return f"gives the error {found['error']}"
    digest = hashlib.sha256(bytes.fromhex(found["hex"])).hexdigest()
    for what, ours in (("dtype", found["dtype"]), ("shape", found["shape"]), ("sha256", digest)):
        if ours != wanted[what]:
            return f"has {what} {ours}, not {wanted[what]}"
    return None


def main():
    program, golden = sys.argv[1], pathlib.Path(sys.argv[2])
    compared = errors = 0
    for path in sorted(golden.rglob("expected.json")):
        expected = json.loads(path.read_text(encoding="utf-8"))
        if "open" in expected:
            continue
        decoded = decoded_values(program, path.parent / "trial")
        for key, wanted in expected_values(expected):
            problem = difference(wanted, decoded.get(key))
            compared += wanted is not None and wanted["status"] == "ok"
            if problem:
                errors += 1
                print(f"{path.parent.relative_to(golden)}: {key} {problem}")
    print(f"{compared} values compared, {errors} differ")
    return 1 if errors or compared < 1000 else 0


if __name__ == "__main__":
    sys.exit(main())
