#!/usr/bin/env python3
"""The jobs of write_bench.cc, done by smdebug's own writer. Runs in the environment `smdebug`.

    write_peer.py sync|async|memory COUNT BYTES STEPS DIRECTORY
"""

import json
import os
import resource
import sys
import time

os.environ["SMDEBUG_LOG_LEVEL"] = "off"
import numpy as np  # noqa: E402
from smdebug.core.modes import ModeKeys  # noqa: E402
from smdebug.core.writer import FileWriter  # noqa: E402


def peak_resident_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def save_step(directory, step, names, values):
    """The writer of the step, and the seconds the caller spent in it."""
    start = time.perf_counter()
    writer = FileWriter(trial_dir=directory, step=step, worker="worker_0")
    for name in names:
        writer.write_tensor(tdata=values, tname=name, mode=ModeKeys.TRAIN, mode_step=step)
    return writer, time.perf_counter() - start


def main():
    mode, count, size, steps, directory = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
    if mode not in ("sync", "async", "memory"):
        sys.exit(__doc__)
    # In place: what making the values takes would hide what writing them takes.
    values = np.empty(size // 4, dtype=np.float32)
    for start in range(0, len(values), 1000):
        values[start:start + 1000] = np.arange(min(1000, len(values) - start), dtype=np.float32) * 0.001
    names = [f"layer{i}.weight" for i in range(count)]
    results = []
    resident = peak_resident_bytes()
    for step in range(steps):
        start = time.perf_counter()
        writer, caller = save_step(directory, step, names, values)
        if mode == "async":
            # The pause in which its thread writes what is queued; closing is not the caller's time here.
            writer.proto_writer._event_queue.join()
        writer.close()
        results.append(time.perf_counter() - start if mode == "sync" else caller)
    if mode == "memory":
        results = [peak_resident_bytes() - resident]
    files = sum(name.endswith(".json") for _, _, found in os.walk(os.path.join(directory, "index")) for name in found)
    print(json.dumps({"complete": files == steps, "results": results}))


if __name__ == "__main__":
    main()
