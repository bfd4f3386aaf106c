"""Lets the real smdebug write a run into a directory: smdebug_writer.py DIR. Prints what a reader must find, as JSON."""

import json
import os
import sys

os.environ.setdefault("SMDEBUG_LOG_LEVEL", "off")

import numpy as np  # noqa: E402
from smdebug.core.collection_manager import CollectionManager  # noqa: E402
from smdebug.core.modes import ModeKeys  # noqa: E402
from smdebug.core.writer import FileWriter  # noqa: E402

STEPS = 7
WORKER = "worker_0"


def main():
    directory = sys.argv[1]
    collections = CollectionManager()
    collections.set_num_workers(1)
    last = None
    for step in range(STEPS):
        last = np.linspace(0, step + 1, 50, dtype=np.float32)
        writer = FileWriter(trial_dir=directory, step=step, worker=WORKER)
        writer.write_tensor(last, "weight", mode=ModeKeys.TRAIN, mode_step=step)
        writer.close()
        collections.get("all").tensor_names.add("weight")
    collections.export(directory, f"{WORKER}_collections.json")
    with open(os.path.join(directory, "training_job_end.ts"), "w", encoding="utf-8"):
        pass
    print(json.dumps({"steps": STEPS, "last_max": float(last.max()), "last_mean": float(last.mean())}))


if __name__ == "__main__":
    main()
