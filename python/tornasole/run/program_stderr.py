"""What is told to the user of a program that runs, on its standard error: never into an open progress bar."""

import logging
import sys


def tell(text: str) -> None:
    """A line of its own. In one piece: workers of one training may tell it at the same time."""
    bars = getattr(sys.modules.get("tqdm.std"), "tqdm", None)
    if getattr(bars, "_instances", None):
        try:
            bars.write(text, file=sys.stderr)  # takes the bars away and puts them back
            return
        except Exception:  # whatever it is, the line below it is told all the same
            pass
    print(text + "\n", end="", file=sys.stderr)


class LogToProgram(logging.Handler):
    """Tells what is logged."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            tell(self.format(record))
        except Exception:
            self.handleError(record)
