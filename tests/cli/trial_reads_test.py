#!/usr/bin/env python3
"""What the reading commands do to a trial, as the kernel saw it: they open nothing outside it and change nothing in it.

The trial is a sound one with links, pipes and sockets added that lead out of it. strace writes down every call that
opens or changes a file."""

import os
import re
import shutil
import socket
import subprocess
import tempfile
import unittest

from cli_program import FIXTURES, PROGRAM, ProgramTest, environment, main

CHANGES = (
    "creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir,link,linkat,symlink,symlinkat,mknod,mknodat,"
    "chmod,fchmod,fchmodat,chown,fchown,lchown,fchownat,utime,utimes,utimensat,futimesat,truncate,ftruncate,fallocate,"
    "setxattr,lsetxattr,fsetxattr,removexattr,lremovexattr,fremovexattr"
)
OPENS = "open,openat,openat2"
SYSTEM = ("/usr/", "/lib/", "/lib64/", "/etc/", "/proc/", "/sys/", "/dev/")
COMMANDS = (
    ("ls", "{trial}"),
    ("ls", "{trial}", "--json"),
    ("show", "{trial}", "Net_fc1.weight"),
    ("show", "{trial}", "outside"),
    ("stats", "{trial}"),
    ("check", "{trial}"),
    ("first-bad", "{trial}"),
    ("diff", "{trial}", "{trial}"),
    ("dump", "{trial}"),
    ("tail", "{trial}"),
    ("verify", "{trial}"),
    ("repair", "{trial}", "--dry-run"),
)


def can_trace():
    if not shutil.which("strace"):
        return False
    return subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode == 0


def tree(directory):
    """Every name below a directory with what a change would change."""
    found = {}
    for root, directories, names in os.walk(directory):
        for name in directories + names:
            path = os.path.join(root, name)
            status = os.lstat(path)
            found[path] = (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return found


@unittest.skipUnless(can_trace() or os.environ.get("CI") == "true", "strace: not here, or not allowed")
class Reads(ProgramTest):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = os.path.realpath(scratch.name)
        self.trial = os.path.join(self.scratch, "trial")
        self.outside = os.path.join(self.scratch, "outside")
        shutil.copytree(os.path.join(FIXTURES, "pytorch_mlp", "trial"), self.trial)
        shutil.copytree(os.path.join(FIXTURES, "core_hook", "trial"), self.outside)
        self.make_ways_out()

    def make_ways_out(self):
        outside_index = os.path.join(self.outside, "index/000000000/000000000003_worker_0.json")
        self.assertTrue(os.path.exists(outside_index))
        os.symlink(outside_index, os.path.join(self.trial, "index/000000000/000000000100_worker_0.json"))
        os.symlink(os.path.join(self.outside, "index/000000000"), os.path.join(self.trial, "index/000000001"))
        os.symlink("../../outside/events/000000000003", os.path.join(self.trial, "events/000000000101"))
        with open(outside_index, encoding="utf-8") as file:
            text = file.read()
        for step, way in ((101, "events/000000000101/"), (102, "events/../../outside/events/000000000003/")):
            climbing = text.replace("events/000000000003/", way)
            self.assertNotEqual(climbing, text)
            index = os.path.join(self.trial, f"index/000000000/{step:012}_worker_0.json")
            with open(index, "w", encoding="utf-8") as file:
                file.write(climbing)
        collections = os.path.join(self.outside, "collections/000000000")
        os.symlink(
            os.path.join(collections, os.listdir(collections)[0]),
            os.path.join(self.trial, "collections/000000000/worker_9_collections.json"),
        )
        os.mkdir(os.path.join(self.trial, "tornasole"))
        os.mkfifo(os.path.join(self.trial, "tornasole/worker_0_health.json"))
        os.mkfifo(os.path.join(self.trial, "index/000000000/000000000103_worker_0.json"))
        with socket.socket(socket.AF_UNIX) as bound:
            here = os.getcwd()
            os.chdir(os.path.join(self.trial, "index/000000000"))  # the address of a socket is short
            bound.bind("000000000104_worker_0.json")
            os.chdir(here)

    def traced(self, *arguments):
        log = os.path.join(self.scratch, "strace.log")
        command = ["strace", "-f", "-y", "-s", "4096", "-o", log, "-e", f"trace={OPENS},{CHANGES}", PROGRAM, *arguments]
        subprocess.run(command, capture_output=True, env=environment(), cwd="/", timeout=300, check=False)
        with open(log, encoding="utf-8", errors="replace") as file:
            lines = [re.sub(r"^\d+ +", "", line.rstrip("\n")) for line in file]
        return [line for line in lines if not line.startswith(("+++", "---"))]

    def test_nothing_is_opened_outside_and_nothing_is_changed(self):
        before = tree(self.scratch)
        for words in COMMANDS:
            arguments = [word.format(trial=self.trial) for word in words]
            with self.subTest(" ".join(words)):
                opened_in_trial = 0
                for line in self.traced(*arguments):
                    call = line.split("(")[0]
                    # A call that another thread interrupts stands in two lines; the second has the result.
                    if call.startswith("<..."):
                        call = line.split()[1]
                    succeeded = re.search(r"\) = \d+", line)
                    if call not in OPENS.split(","):
                        self.assertIsNone(succeeded, line)
                        continue
                    self.assertIsNone(re.search(r"O_(WRONLY|RDWR|CREAT|TRUNC|APPEND)", line), line)
                    if not succeeded:
                        continue
                    path = re.search(r"= \d+<(.*?)>", line).group(1)
                    if path.startswith(self.trial):
                        opened_in_trial += 1
                    else:
                        self.assertTrue(path == "/" or path.startswith(SYSTEM) or self.is_program(path), line)
                self.assertGreater(opened_in_trial, 5)
        after = tree(self.scratch)
        after.pop(os.path.join(self.scratch, "strace.log"))
        self.assertEqual(before, after)

    def is_program(self, path):
        """The program's own library, and the directories above the trial, which a search for it may look at."""
        is_own = path.startswith(os.path.dirname(os.path.dirname(PROGRAM)))
        return is_own or self.trial.startswith(path.rstrip("/") + "/")


if __name__ == "__main__":
    main()
