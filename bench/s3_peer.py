#!/usr/bin/env python3
"""smdebug's own writer on a bucket: what it adds to a step on the thread that trains. In the environment `smdebug`.

    s3_peer.py STEPS TENSORS BYTES s3://BUCKET/PREFIX

prints {"extra_s": seconds a step}.
"""

import json
import os
import sys
import time

os.environ["SMDEBUG_LOG_LEVEL"] = "off"
import numpy as np  # noqa: E402
from smdebug.core.modes import ModeKeys  # noqa: E402
from smdebug.core.writer import FileWriter  # noqa: E402


def main():
    steps, tensors, size = map(int, sys.argv[1:4])
    values = [np.arange(size // 4, dtype=np.float32) + tensor for tensor in range(tensors)]
    spent = 0.0
    for step in range(steps):
        start = time.perf_counter()
        writer = FileWriter(trial_dir=sys.argv[4], step=step, worker="worker_0")
        for tensor, value in enumerate(values):
            writer.write_tensor(value, f"t{tensor}", mode=ModeKeys.TRAIN, mode_step=step)
        writer.close()
        spent += time.perf_counter() - start
        time.sleep(0.01)
    print(json.dumps({"extra_s": spent / steps}))


if __name__ == "__main__":
    main()
