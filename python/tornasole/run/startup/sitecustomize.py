"""Found first on PYTHONPATH by a program that ``tornasole run`` started. Leaves the program as it is without it."""

import os
import sys


def _hand_over() -> None:
    """Takes this directory off the path and runs the sitecustomize the environment has of its own, if any."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    this = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if this is not None:
            sys.modules["sitecustomize"] = this


_hand_over()
try:
    from tornasole.run.watch_imports import install
except ImportError as _error:
    print(f"tornasole: nothing will be captured, the package cannot be imported: {_error}", file=sys.stderr)
else:
    install()
