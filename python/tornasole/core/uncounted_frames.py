"""Functions whose frames Python's warnings do not count: a warning below them is told of the program's own line.

Frames of the import machinery are not counted, and are known by the name of the file.
"""

from typing import Callable

_FILE = "<tornasole, as importlib._bootstrap>"


def uncounted(function: Callable) -> Callable:
    function.__code__ = function.__code__.replace(co_filename=_FILE)
    return function
