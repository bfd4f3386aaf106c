#!/usr/bin/env python3
"""Takes pictures of TensorBoard's own pages with files that a hook wrote, for somebody to look at.

    scripts/tensorboard_shot.py LOGDIR [--out build/shots] [--python .venvs/tensorboard/bin/python] [PAGE ...]

Starts TensorBoard on a free port of this machine alone, opens each PAGE (scalars, histograms, graphs) in a Chromium
without a window, and writes <out>/<page>.png. Needs the environment `tensorboard` (make env NAME=tensorboard) and the
program chromium, which no test does.
"""

import argparse
import contextlib
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = {"scalars": "#timeseries", "histograms": "#histograms", "graphs": "#graphs"}
START_SECONDS, DRAW_SECONDS = 90, 25


@contextlib.contextmanager
def tensorboard(python, directory):
    """The address of a TensorBoard that shows the directory."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [python, "-m", "tensorboard.main", "--logdir", directory, "--host", "127.0.0.1", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}/"
    try:
        wait_until_runs(server, address)
        yield address
    finally:
        server.terminate()
        server.wait()


def wait_until_runs(server, address):
    """TensorBoard answers and has found a run."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if server.poll() is not None:
            sys.exit(f"TensorBoard ended with status {server.returncode}")
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            if urllib.request.urlopen(address + "data/runs", timeout=5).read() not in (b"", b"[]"):
                return
        time.sleep(0.5)
    sys.exit(f"TensorBoard showed no run within {START_SECONDS} s: are there event files below the directory?")


def take(browser, address, path):
    """Draws a page and writes the picture."""
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless=new", "--disable-gpu", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={profile}"]
        options += ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]  # curves are WebGL
        options += ["--window-size=1500,1000", f"--virtual-time-budget={1000 * DRAW_SECONDS}", f"--screenshot={path}"]
        done = subprocess.run([browser, *options, address], capture_output=True, text=True, timeout=300)
    if done.returncode or not path.exists():
        sys.exit(f"{browser} took no picture of {address}: {done.stderr.strip()[-500:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logdir", type=pathlib.Path)
    parser.add_argument("pages", nargs="*", metavar="PAGE")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/shots")
    parser.add_argument("--python", type=pathlib.Path, default=ROOT / ".venvs/tensorboard/bin/python")
    options = parser.parse_args()
    unknown = [page for page in options.pages if page not in PAGES]
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    for is_wrong, message in (
        (unknown, f"no page is called {', '.join(unknown)}; there are {', '.join(PAGES)}"),
        (not options.logdir.is_dir(), f"{options.logdir} is no directory"),
        (not options.python.exists(), f"there is no {options.python}; make env NAME=tensorboard makes it"),
        (browser is None, "there is no chromium on the PATH (Debian: apt-get install chromium)"),
    ):
        if is_wrong:
            parser.error(message)
    options.out.mkdir(parents=True, exist_ok=True)
    with tensorboard(str(options.python), str(options.logdir)) as address:
        for page in options.pages or PAGES:
            path = (options.out / f"{page}.png").resolve()
            take(browser, address + PAGES[page], path)
            print(path)


if __name__ == "__main__":
    main()
