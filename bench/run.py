#!/usr/bin/env python3
"""Measures tornasole beside smdebug and prints one line per job: ours, peer, ratio, target.

    run.py [--bin build/bin] [--python .venvs/smdebug/bin/python] [--out build/bench] [--repeats 5] [--only WORD]
           [--markdown FILE]

Contenders take turns in one run and write to the same file system; a number is the median over all steps of all turns,
the first step of each turn left out. A turn in which anything was dropped does not count and is named. Nothing is
asserted: a target that was missed is marked `short`. The table is also written as bench.json beside the output
directory, and as a page for people if one is named.

The jobs are in engine_jobs.py, training_jobs.py and s3_jobs.py."""

import argparse
import json
import os
import pathlib
import platform
import shutil
import sys

import engine_jobs
import s3_jobs
import training_jobs
from runner import ROOT, Runner

PAGE = """# Benchmarks

What `make bench` printed{part}, in one run on one machine: {cores} cores of {machine}, {system}. Peers are the real
smdebug 1.0.34 and the bare frameworks; contenders take turns in the same run: {repeats} each, in trainings dozens.
`short` marks what missed its target. A shared machine scatters: figures of single runs differ by a third, those of what
writes megabytes a step by a factor of two.

`make bench` measures again where you are; `.venvs/smdebug/bin/python bench/run.py --only WORD` measures some of it, and
`--markdown docs/benchmarks.md` writes this page.

| job | ours | peer | ratio | target | |
|---|---:|---:|---:|---:|---|
"""
READING = """
What the figures of a PyTorch training are made of, as far as it was looked into, on a shared machine of two cores:

- Times are what a step takes more than a bare one in the same round. A second bare contender, which should show
  nothing, shows up to 50 us, most with the models that fill the caches.
- **losses**: our own code takes 20 to 30 us of a step, nearly all of it waiting for memory, since what the training
  computes with has pushed ours out of the caches since the step before. The rest is PyTorch's longer way of calling a
  module that has callbacks, and the writer: three small files a step take it 120 to 250 us, and where it runs on the
  other half of the training's own core, the training loses a tenth of that.
- **save all, processor**: four fifths of the writer's time are the kernel's, copying into the page cache. smdebug pays
  for the same copy.
- **standard**: losses at each step take 80 to 130 us however small the model is, and are taken for 120. The budget of
  3 % leaves nothing for statistics where a step takes less than four milliseconds; there they have 0.3 % and the whole
  may be above 3 %.
"""


def as_page(rows, machine, repeats, only):
    part = f" for `{only}`" if only else ""
    cells = ([row["job"], row["ours"], row["peer"], row["ratio"], row["target"], "ok" if row["ok"] else "short"]
             for row in rows)
    table = "".join(f"| {' | '.join(line)} |\n" for line in cells)
    return PAGE.format(**machine, repeats=repeats, part=part) + table + READING


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--python", type=pathlib.Path, default=ROOT / ".venvs/smdebug/bin/python")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/bench")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="jobs whose name contains this")
    parser.add_argument("--markdown", type=pathlib.Path, help="the table as a page")
    options = parser.parse_args()
    if not options.python.exists():
        sys.exit(f"there is no {options.python}; make env NAME=smdebug makes it")
    runner = Runner(options)
    print(f"{'job':<44}{'ours':>12}{'peer':>12}{'ratio':>10}{'target':>12}")
    for module in (engine_jobs, training_jobs, s3_jobs):
        for name, job in module.jobs():
            if options.only in name:
                job(runner, name)
    for note in runner.notes:
        print(f"note: {note}")
    system = " ".join([platform.system(), platform.release().split("-")[0], *platform.libc_ver()])
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "system": system}
    result = {"machine": machine, "repeats": options.repeats, "rows": runner.rows, "notes": runner.notes}
    options.out.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text(as_page(runner.rows, machine, options.repeats, options.only))
    shutil.rmtree(options.out, ignore_errors=True)
    short = sum(not row["ok"] for row in runner.rows)
    print(f"{len(runner.rows)} jobs, {short} short of their target; {options.out.with_suffix('.json')}")


if __name__ == "__main__":
    main()
