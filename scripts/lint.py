#!/usr/bin/env python3
"""lint.py BUILD_DIR [-v] [FILE...]: clang-tidy over src/, with the checks of .clang-tidy.

Two things make it quick, and neither changes a verdict:

1. A file that passed is not looked at again, in any clone, until it, a header it includes, its compiler options,
   .clang-tidy, clang-tidy or an installed library changes. ~/.cache/tornasole-lint keeps that (or $XDG_CACHE_HOME).
2. Most of the time goes into the headers of libraries. Files of one folder are therefore first looked at together, in
   a file that includes them all; where that has a finding, or does not compile, each half is looked at, and so on: what
   is said of one file alone counts. -v tells which files had to be taken apart and why.
"""

import concurrent.futures
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIDY = "clang-tidy-19"
# No finding of ours: GCC's warnings that clang does not know, and what libstdc++ 12 deprecates and uses itself.
FOREIGN = ["--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-deprecated-declarations"]
TOGETHER = 8
KEPT_DAYS = 30


@dataclasses.dataclass
class Source:
    path: pathlib.Path
    options: list  # of the compiler, without what names files
    directory: str
    stamp: pathlib.Path = None


def digest(parts):
    state = hashlib.sha256()
    for part in parts:
        state.update(hashlib.sha256(part if isinstance(part, bytes) else part.encode()).digest())
    return state.hexdigest()


def cache_directory(build):
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for place in (pathlib.Path(home) / "tornasole-lint", build / "lint"):
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(place, os.W_OK):
            return place
    sys.exit("lint: neither ~/.cache/tornasole-lint nor the build directory can be written to")


def forget_old_stamps(cache):
    oldest = time.time() - KEPT_DAYS * 86400
    for stamp in cache.iterdir():
        if stamp.is_file() and stamp.stat().st_mtime < oldest:
            stamp.unlink(missing_ok=True)


def is_older(source, moment):
    """Whether nobody has touched the file or a header of it since, so that what was looked at is what was hashed."""
    return all(path.stat().st_mtime < moment for path in (source.path, *all_included(source.path)))


def machine_state():
    """What is not in the project and can change a verdict: the checks, clang-tidy, the installed libraries."""
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    names = [line.strip() for line in (ROOT / "scripts/packages.txt").read_text().splitlines()]
    names = [name for name in names if name and not name.startswith("#")]
    query = ["dpkg-query", "-W", "-f", "${Package} ${Version}\n", *names, "libstdc++-12-dev", "libc6-dev"]
    packages = subprocess.run(query, capture_output=True, check=False).stdout
    return digest([version, packages, (ROOT / ".clang-tidy").read_bytes()])


@functools.cache
def text_of(path):
    return path.read_text()


@functools.cache
def included_by(path):
    """The project's own headers that a file includes itself."""
    found = []
    for name in re.findall(r'^\s*#\s*include\s+["<]([^">]+)[">]', text_of(path), re.MULTILINE):
        places = (path.parent / name, ROOT / "src" / name, ROOT / "include" / name)
        found += [place.resolve() for place in places if place.is_file()][:1]
    return found


def all_included(path):
    seen, to_do = set(), [path]
    while to_do:
        for header in included_by(to_do.pop()):
            if header not in seen:
                seen.add(header)
                to_do.append(header)
    return sorted(seen)


def options_of(command):
    options, words = [], iter(shlex.split(command)[1:])
    for word in words:
        if word in ("-o", "-c", "-MF", "-MT"):
            next(words, None)
        elif word.startswith(("-D", "-I", "-U", "-std", "-f", "-m", "-O", "-W")) or word == "-isystem":
            options.append(word if word != "-isystem" else f"-isystem{next(words, '')}")
    return options


def sources(build, asked, cache):
    machine = machine_state()
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if path.is_relative_to(ROOT / "src") and (not asked or path in asked):
            source = Source(path, options_of(entry["command"]), entry["directory"])
            names = [str(header.relative_to(ROOT)) for header in all_included(path)]
            texts = [text_of(header) for header in all_included(path)]
            options = [option.replace(str(build), "BUILD").replace(str(ROOT), "ROOT") for option in source.options]
            name = str(path.relative_to(ROOT))
            source.stamp = cache / digest([machine, *options, name, text_of(path), *names, *texts])
            found[path] = source
    if not found:
        sys.exit(f"lint: {build}/compile_commands.json names no file of src/")
    return [found[path] for path in sorted(found)]


def local_names(path):
    """What a file calls by a name of its own; two files with the same one cannot be looked at together."""
    names = set()
    for part in re.findall(r"^namespace \{$(.*?)^\}  // namespace$", text_of(path), re.MULTILINE | re.DOTALL):
        names.update(re.findall(r"^(?:template .*\n)?(?:struct|class|enum class|enum|using) (\w+)", part, re.MULTILINE))
        names.update(re.findall(r"^[\w:].*?(\w+)(?:\(| = |\{|\[|;)", part, re.MULTILINE))
    return names - {"namespace"}


def can_be_joined(path):
    text = text_of(path)
    return not re.search(r"^\s*#\s*(define|undef)\b|^using (namespace|tornasole)\b|foreach_target", text, re.MULTILINE)


def groups_of(stale):
    """Files of one folder with the same options and no name in common, up to TOGETHER of them."""
    groups, open_groups = [], {}
    for source in stale:
        if not can_be_joined(source.path):
            groups.append([source])
            continue
        key = (source.path.parent, tuple(source.options))
        names = local_names(source.path)
        for members, taken in open_groups.setdefault(key, []):
            if len(members) < TOGETHER and not names & taken:
                members.append(source)
                taken |= names
                break
        else:
            open_groups[key].append(([source], names))
    for choices in open_groups.values():
        groups += [members for members, _ in choices]
    return sorted(groups, key=len, reverse=True)


def run_tidy(path, options, directory):
    command = [TIDY, "--quiet", f"--config-file={ROOT / '.clang-tidy'}", *FOREIGN]
    command += ["--header-filter=/(src|include/tornasole)/[^ ]*[.](h|cc)$", str(path), "--", "-xc++", *options]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    return done.returncode == 0, done.stdout + (done.stderr if done.returncode else "")


def check(group, place):
    """The files of a group with what is wrong with each: of two or more, nothing, or what each half says."""
    if len(group) == 1:
        passed, output = run_tidy(group[0].path, group[0].options, group[0].directory)
        return [(group[0], "" if passed else output or "clang-tidy failed")]
    joined = place / f"{group[0].stamp.name[:16]}.cc"
    joined.write_text("".join(f'#include "{source.path}"\n' for source in group))
    passed, output = run_tidy(joined, group[0].options, group[0].directory)
    joined.unlink()
    if passed:
        return [(source, "") for source in group]
    if "-v" in sys.argv:
        print(f"apart: {', '.join(source.path.name for source in group)}\n{output[:600]}", flush=True)
    return check(group[: len(group) // 2], place) + check(group[len(group) // 2 :], place)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    asked = {pathlib.Path(name).resolve() for name in sys.argv[2:] if name != "-v"}
    began, began_at = time.monotonic(), time.time()
    cache = cache_directory(build)
    forget_old_stamps(cache)
    files = sources(build, asked, cache)
    stale = []
    for source in files:
        if source.stamp.exists():
            source.stamp.touch()
        else:
            stale.append(source)
    place = build / "lint"
    place.mkdir(parents=True, exist_ok=True)
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tasks = [pool.submit(check, group, place) for group in groups_of(stale)]
        for task in concurrent.futures.as_completed(tasks):
            for source, output in task.result():
                if output:
                    bad += 1
                    print(f"--- {source.path.relative_to(ROOT)}\n{output}", flush=True)
                elif is_older(source, began_at):
                    source.stamp.touch()
    seconds = time.monotonic() - began
    print(f"lint: {len(files)} files, {len(stale)} of them looked at, {bad} with findings, {seconds:.0f} s")
    sys.exit(1 if bad else 0)


main()
