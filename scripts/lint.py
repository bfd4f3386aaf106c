#!/usr/bin/env python3
"""lint.py BUILD_DIR [FILE...]: clang-tidy over src/, with the checks of .clang-tidy.

A file that passed is not looked at again until it, a header or .clang-tidy changes; BUILD_DIR/lint keeps that.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIDY = "clang-tidy-19"


def digest(parts):
    state = hashlib.sha256()
    for part in parts:
        state.update(hashlib.sha256(part).digest())
    return state.hexdigest()


def shared_state():
    """Everything that can change the verdict on more than one file."""
    headers = sorted([*(ROOT / "src").rglob("*.h"), *(ROOT / "include").rglob("*.h")])
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    return digest([version, (ROOT / ".clang-tidy").read_bytes(), *(path.read_bytes() for path in headers)])


def check(path, build, stamp):
    if stamp.exists():
        return path, "", True
    # No finding of ours: GCC's warnings that clang does not know, and what libstdc++ 12 deprecates and uses itself.
    foreign = ["--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-deprecated-declarations"]
    command = [TIDY, "--quiet", "-p", str(build), *foreign, str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.touch()
    return path, done.stdout + (done.stderr if done.returncode else ""), done.returncode == 0


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    asked = {pathlib.Path(name).resolve() for name in sys.argv[2:]}
    commands = json.loads((build / "compile_commands.json").read_text())
    files = {}
    for entry in commands:
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if path.is_relative_to(ROOT / "src") and (not asked or path in asked):
            files[path] = entry["command"].encode()
    if not files:
        sys.exit(f"lint: {build}/compile_commands.json names no file of src/")
    common = shared_state().encode()
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tasks = []
        for path, command in sorted(files.items()):
            stamp = build / "lint" / digest([common, command, path.read_bytes()])
            tasks.append(pool.submit(check, path, build, stamp))
        for task in concurrent.futures.as_completed(tasks):
            path, output, passed = task.result()
            bad += not passed
            if not passed:
                print(f"--- {path.relative_to(ROOT)}\n{output}", flush=True)
    print(f"lint: {len(files)} files, {bad} with findings")
    sys.exit(1 if bad else 0)


main()
