import os

import pytest

# A busy disk takes what is queued in its own time: a test that writes a run wants all of it.
os.environ.setdefault("TORNASOLE_CLOSE_WAIT_S", "120")

from tornasole.core import singleton_utils
from tornasole.core.guard import guard


@pytest.fixture(autouse=True)
def fresh_process_state():
    """No test sees the hook or the shut-down guard of another."""
    singleton_utils.del_hook()
    guard.disable_smdebug = False
    yield
    hook = singleton_utils.current_hook()
    if hook is not None:
        hook.close()
    singleton_utils.del_hook()
    guard.disable_smdebug = False
