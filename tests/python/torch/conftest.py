import os

import pytest
import torch

# A busy disk takes what is queued in its own time: a test that writes a run wants all of it.
os.environ.setdefault("TORNASOLE_CLOSE_WAIT_S", "120")

# What older versions of PyTorch do not have: a part of a test's name, the version it came with, and what is missing.
# docs/python.md tells users.
SINCE = [
    ("what the optimizer sees", "2.0", "callbacks of optimizers"),
    ("the optimizer's state", "2.0", "callbacks of optimizers"),
    ("test_activations_computed_again_are_saved_once", "2.1", "a way to tell a backward pass"),
    ("with_scaler", "2.3", "torch.amp.GradScaler"),
    ("test_facts_of_a_step", "2.3", "torch.amp.GradScaler"),
    ("test_gradients_accumulated_scaled_and_clipped", "2.3", "torch.amp.GradScaler"),
    ("test_every_element_type", "2.1", "float8"),
    ("test_a_model_in_shards", "2.6", "fully_shard"),
    ("test_the_same_trial", "2.3", "the version that smdebug is run with"),
    ("test_calm_steps_have_their_values_and_facts", "2.0", "callbacks of optimizers"),
    ("test_steps_of_other_models_optimizers", "2.0", "callbacks of optimizers"),
    ("test_a_loss_that_nobody_goes_back_from", "2.1", "numbers of the nodes of a graph"),
]


def version_of(text):
    return tuple(int(part) for part in text.split(".")[:2])


def pytest_collection_modifyitems(items):
    have = version_of(torch.__version__)
    for item in items:
        for part, since, what in SINCE:
            if part in item.nodeid and have < version_of(since):
                item.add_marker(pytest.mark.skip(reason=f"needs PyTorch {since}: {what}"))
                break


from tornasole.core import singleton_utils
from tornasole.core.guard import guard


@pytest.fixture(autouse=True)
def fresh_process_state():
    """No test sees the hook, the shut-down guard or the threads of another."""
    torch.set_num_threads(1)
    singleton_utils.del_hook()
    guard.disable_smdebug = False
    yield
    hook = singleton_utils.current_hook()
    if hook is not None:
        hook.close()
    singleton_utils.del_hook()
    guard.disable_smdebug = False
