"""The survival rows: training goes on, whatever happens to the capture.

    survival_test.py --bin DIR --source DIR --set short|long [--row N] [--json FILE]

Each row is a function named after it, in death_rows.py, storage_rows.py, s3_rows.py, s3_process_rows.py or process_rows.py. It returns its figures and
fails by raising Broken; the figures of all rows are printed and go to --json. In every row: the weights equal those of
the bare run, no value is wrong, due = committed + dropped, and the real smdebug opens what is committed.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

import death_rows
import process_rows
import s3_rows
import s3_process_rows
import storage_rows
from survival_world import Broken, World

SHORT = [
    death_rows.row_1, death_rows.row_2, death_rows.row_6, death_rows.row_7, death_rows.row_8, storage_rows.row_9,
    storage_rows.row_11, storage_rows.row_12, storage_rows.row_14, s3_rows.row_18, s3_rows.row_19, s3_rows.row_19_spool, s3_rows.row_19_upload, s3_rows.row_20, s3_rows.row_21,
    s3_rows.row_22, s3_rows.row_23, process_rows.row_24, process_rows.row_25, process_rows.row_26,
    process_rows.row_29, process_rows.row_31, process_rows.row_32, process_rows.row_33,
    process_rows.row_34, process_rows.row_35, process_rows.row_36, process_rows.row_37, process_rows.row_39,
    s3_process_rows.row_7_s3, s3_process_rows.row_36_s3, s3_process_rows.row_37_s3, s3_process_rows.row_38_s3, s3_process_rows.row_40_s3,
]
LONG = [
    death_rows.row_1_full, death_rows.row_3, death_rows.row_4, death_rows.row_5, death_rows.row_8_other_host,
    storage_rows.row_9_recovery, storage_rows.row_10, storage_rows.row_13, storage_rows.row_15,
    storage_rows.row_16, s3_rows.row_18_full, s3_rows.row_19_full, s3_rows.row_19_spool_full, process_rows.row_24_full, process_rows.row_25_full, process_rows.row_36_full,
    s3_process_rows.row_36_s3_full,
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--set", choices=("short", "long"), default="short")
    parser.add_argument("--row", help="only the row of this function name")
    parser.add_argument("--json")
    args = parser.parse_args()
    args.bin, args.source = os.path.abspath(args.bin), os.path.abspath(args.source)
    if not os.path.exists(os.path.join(args.source, ".venvs", "smdebug", "bin", "python")):
        print("skipped: the environment smdebug is missing (make env NAME=smdebug)")
        return 1 if os.environ.get("CI") else 77
    rows = SHORT if args.set == "short" else LONG
    if args.row:
        rows = [row for row in SHORT + LONG if row.__name__ == args.row]
    results, failed = {}, 0
    for row in rows:
        scratch = tempfile.mkdtemp(prefix="survival-")
        world = World(args, scratch)
        start = time.monotonic()
        try:
            figures = row(world)
            figures["smdebug_values"] = world.check_with_smdebug()
            verdict = "ok"
        except (Broken, subprocess.TimeoutExpired) as problem:
            figures, verdict, failed = {"problem": str(problem)}, "BROKEN", failed + 1
        except Exception:  # the other rows run all the same
            figures, verdict, failed = {"problem": traceback.format_exc()}, "BROKEN", failed + 1
        finally:
            world.end_processes()
            shutil.rmtree(scratch, ignore_errors=True)
        seconds = round(time.monotonic() - start, 1)
        results[row.__name__] = {"what": row.__doc__, "verdict": verdict, "seconds": seconds, **figures}
        print(f"{verdict:6} {row.__name__:16} {seconds:6.1f} s  {row.__doc__}  {json.dumps(figures)}", flush=True)
    if args.json:
        known = {}
        if os.path.exists(args.json):
            with open(args.json, encoding="utf-8") as file:
                known = json.load(file)
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({**known, **results}, file, indent=1)
    print(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
