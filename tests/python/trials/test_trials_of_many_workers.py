"""A trial that very many workers wrote opens at once, with the parts of all of them."""

import time

import numpy as np

from tornasole.core.collection_manager import CollectionManager
from tornasole.core.modes import ModeKeys
from tornasole.core.writer import FileWriter
from tornasole.trials import create_trial

WORKERS, STEPS = 200, 3


def test_a_trial_of_two_hundred_workers(tmp_path):
    out_dir = str(tmp_path / "run")
    collections = CollectionManager()
    collections.set_num_workers(WORKERS)
    collections.get("all").tensor_names.add("weight")
    for rank in range(WORKERS):
        # The last one has saved one step less.
        for step in range(STEPS if rank < WORKERS - 1 else STEPS - 1):
            writer = FileWriter(trial_dir=out_dir, step=step, worker=f"worker_{rank}")
            writer.write_tensor(np.full(4, rank * 10 + step, np.float32), "weight", mode=ModeKeys.TRAIN, mode_step=step)
            writer.close()
        collections.export(out_dir, f"worker_{rank}_collections.json")
    begin = time.monotonic()
    trial = create_trial(out_dir)
    assert trial.num_workers == WORKERS
    assert len(trial.workers()) == WORKERS
    assert trial.steps() == [0, 1] and trial.steps(show_incomplete_steps=True) == [0, 1, 2]
    weight = trial.tensor("weight")
    assert len(weight.workers(0)) == WORKERS and len(weight.workers(2)) == WORKERS - 1
    for rank in (0, 7, WORKERS - 1):
        assert weight.value(1, worker=f"worker_{rank}").tolist() == [rank * 10 + 1] * 4
    assert time.monotonic() - begin < 15
