#!/usr/bin/env python3
"""Installs a build into a directory of its own, then uses the install tree alone, as a stranger would: with CMake and
with pkg-config, from C++ and from C. Also looks at what the library exports and needs."""

import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
OPTIONS = None
# What a process that loads the library loads with it.
NEEDED = r"lib(isal|simdjson|stdc\+\+|gcc_s|c|m|pthread)\.so(\.\d+)*|ld-linux-[\w-]+\.so\.\d"


def run(*command, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **more)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))} gave {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


class InstallTree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(tempfile.mkdtemp(prefix="tornasole-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.work)
        run(OPTIONS.cmake, "--install", OPTIONS.build, "--prefix", cls.work / "first")
        # Moved before it is used: nothing in it may depend on where it was installed.
        cls.prefix = cls.work / "moved"
        (cls.work / "first").rename(cls.prefix)
        cls.library = next(cls.prefix.rglob("libtornasole.so")).resolve()

    def use_with_cmake(self, name, program):
        build = self.work / f"{name}-cmake"
        run(OPTIONS.cmake, "-S", HERE / name, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_CXX_COMPILER={OPTIONS.cxx}", f"-DCMAKE_C_COMPILER={OPTIONS.cc}",
            f"-DWANTED_VERSION={OPTIONS.version}", "-DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON")
        run(OPTIONS.cmake, "--build", build)
        self.captures(build / program, self.work / f"{name}-cmake-run")

    def use_with_pkg_config(self, name, source, *compiler):
        folder = next(self.prefix.rglob("tornasole.pc")).parent
        flags = run("pkg-config", "--cflags", "--libs", "tornasole", env={**os.environ, "PKG_CONFIG_PATH": str(folder)})
        program = self.work / f"{name}-pkg"
        run(*compiler, HERE / name / source, "-o", program, *shlex.split(flags))
        self.captures(program, self.work / f"{name}-pkg-run")

    def captures(self, program, directory):
        environment = {**os.environ, "LD_LIBRARY_PATH": str(self.library.parent), "TORNASOLE_STRICT": "1",
                       "TORNASOLE_CLOSE_WAIT_S": "120"}
        self.assertEqual(run(program, directory, env=environment), "3\n")
        self.assertTrue((directory / "training_job_end.ts").is_file())
        self.assertEqual(len(list((directory / "index").rglob("*.json"))), 3)

    def test_a_cxx_program_finds_it_with_cmake(self):
        self.use_with_cmake("consumer", "consumer")

    def test_a_cxx_program_finds_it_with_pkg_config(self):
        self.use_with_pkg_config("consumer", "consumer.cc", OPTIONS.cxx, "-std=c++20", "-Wall", "-Wextra", "-Werror")

    def test_a_c_program_finds_it_with_cmake(self):
        self.use_with_cmake("c_consumer", "c_consumer")

    def test_a_c_program_finds_it_with_pkg_config(self):
        self.use_with_pkg_config("c_consumer", "c_consumer.c", OPTIONS.cc, "-std=c11", "-Wall", "-Wextra", "-Werror")

    def test_another_minor_version_is_refused(self):
        major, minor, _ = OPTIONS.version.split(".")
        wanted = f"{major}.{int(minor) + 1}.0"
        with self.assertRaisesRegex(AssertionError, "compatible with requested version"):
            run(OPTIONS.cmake, "-S", HERE / "consumer", "-B", self.work / "newer",
                f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DWANTED_VERSION={wanted}")

    def test_the_library_exports_only_names_of_ours(self):
        names = [line.split(maxsplit=2)[2] for line in run("nm", "-DC", "--defined-only", self.library).splitlines()]
        ours = re.compile(r"(typeinfo for |typeinfo name for |vtable for |VTT for )?tornasole::|tornasole_\w+$")
        self.assertIn("tornasole::Hook::open(tornasole::HookOptions)", names)
        self.assertEqual([name for name in names if not ours.match(name)], [])
        self.assertEqual([name for name in names if name.startswith("tornasole::capture::")], [])

    def test_the_library_needs_only_what_is_documented_and_searches_nowhere_else(self):
        dynamic = run("readelf", "-dW", self.library)
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
        self.assertEqual([name for name in needed if not re.fullmatch(NEEDED, name)], [])
        self.assertNotRegex(dynamic, r"\((RPATH|RUNPATH)\)")
        major, minor, _ = OPTIONS.version.split(".")
        self.assertIn(f"[libtornasole.so.{major}.{minor}]", dynamic)

    def test_the_library_is_hardened(self):
        self.assertRegex(run("readelf", "-dW", self.library), r"\bBIND_NOW\b|\bNOW\b")
        segments = run("readelf", "-lW", self.library)
        self.assertRegex(segments, r"GNU_RELRO")
        self.assertRegex(segments, r"GNU_STACK\s+\S+\s+\S+\s+\S+\s+\S+\s+\S+\s+RW\s")
        self.assertIn("__stack_chk_fail", run("nm", "-D", self.library))

    def test_nothing_installed_names_the_place_it_was_built(self):
        for path in self.prefix.rglob("*"):
            if path.is_file() and path.suffix in (".cmake", ".pc", ".h"):
                self.assertNotIn(str(OPTIONS.build), path.read_text(), path)
                self.assertNotIn(str(HERE.parent.parent), path.read_text(), path)

    def test_every_public_header_is_installed(self):
        root = HERE.parent.parent
        sources = [root / "include/tornasole", *root.glob("adapters/*/include/tornasole")]
        installed = {path.name for path in (self.prefix / "include" / "tornasole").iterdir()}
        self.assertEqual(installed, {path.name for source in sources for path in source.iterdir()})
        self.assertGreater(len(sources), 2)

    def test_a_component_that_does_not_exist_is_refused_by_name(self):
        with self.assertRaisesRegex(AssertionError, "no component mxnet; there are libtorch and xgboost"):
            run(OPTIONS.cmake, "-S", HERE / "consumer", "-B", self.work / "component",
                f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DWANTED_COMPONENTS=mxnet",
                f"-DWANTED_VERSION={OPTIONS.version}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for option in ("build", "cmake", "cxx", "cc", "version"):
        parser.add_argument(f"--{option}", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
