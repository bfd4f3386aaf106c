import pytest
import torch

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
