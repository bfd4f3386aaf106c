"""What the tests of trials share."""

import os

# A busy disk takes what is queued in its own time: a test that writes a run wants all of it.
os.environ.setdefault("TORNASOLE_CLOSE_WAIT_S", "120")
