#!/usr/bin/env python3
"""The adapters from an install tree: every program of tests/adapters and examples/ that uses one, compiled with the
libtorch and XGBoost of Debian and with those inside the newest wheels, run, and compared with the same in Python.

Needs the packages of scripts/packages-adapters.txt and the environments torch, torch-old, xgboost and xgboost-old.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OPTIONS = None


def run(*command, cwd=None, **environment):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=cwd,
                          env={**os.environ, "TORNASOLE_STRICT": "1", "TORNASOLE_CLOSE_WAIT_S": "120", **environment})
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))} gave {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def python_of(environment):
    return ROOT / ".venvs" / environment / "bin" / "python"


def package_folder(environment, package):
    """Where a package of an environment is installed."""
    found = list((ROOT / ".venvs" / environment / "lib").glob(f"python*/site-packages/{package}"))
    if not found:
        raise AssertionError(f"there is no {package} in .venvs/{environment}: scripts/env.sh {environment} makes it")
    return found[0]


def setUpModule():
    global WORK, PREFIX, CLI
    WORK = pathlib.Path(tempfile.mkdtemp(prefix="tornasole-adapters-"))
    unittest.addModuleCleanup(shutil.rmtree, WORK)
    PREFIX = WORK / "installed"
    run(OPTIONS.cmake, "--install", OPTIONS.build, "--prefix", PREFIX)
    CLI = PREFIX / "bin" / "tornasole"


def build(name, components, *settings):
    """Builds the programs that need these components; the folder they are in."""
    folder = WORK / name
    launcher = shutil.which("ccache")
    run(OPTIONS.cmake, "-S", HERE / "programs", "-B", folder, f"-DCMAKE_PREFIX_PATH={PREFIX}", "-G", "Ninja",
        f"-DCMAKE_CXX_COMPILER={OPTIONS.cxx}", f"-DCMAKE_C_COMPILER={OPTIONS.cc}", f"-DWANTED={components}",
        f"-DSNIPPETS={write_snippets(WORK / 'snippets')}",
        *([f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"] if launcher else []), *settings)
    # Paths below the folder of this test are hashed relative to it, so that the next run finds what this one compiled.
    run(OPTIONS.cmake, "--build", folder, "--parallel", "1", CCACHE_BASEDIR=str(WORK), CCACHE_NOHASHDIR="1")
    return folder


def write_snippets(folder):
    """The programs of docs/cpp.md that use an adapter, as <adapter>_snippet.cc."""
    folder.mkdir(exist_ok=True)
    for code in re.findall(r"^```cpp\n(.*?)^```$", (ROOT / "docs/cpp.md").read_text(), re.MULTILINE | re.DOTALL):
        if used := re.search(r'#include "tornasole/(libtorch|xgboost)\.h"', code):
            (folder / f"{used.group(1)}_snippet.cc").write_text(code)
    return folder


class Runs(unittest.TestCase):
    """Programs that write a trial each."""

    folder: pathlib.Path

    def capture(self, program, *arguments):
        """Runs a program with a new directory; the directory, whose files are all good."""
        out = pathlib.Path(tempfile.mkdtemp(dir=WORK)) / "run"
        run(self.folder / program, out, *arguments)
        self.assertIn(": sound", run(CLI, "verify", out))
        return out

    def run_snippet(self, adapter, written):
        place = pathlib.Path(tempfile.mkdtemp(dir=WORK))
        run(self.folder / f"{adapter}_snippet", cwd=place)
        self.assertIn(": sound", run(CLI, "verify", place / written))

    def names(self, out):
        return run(CLI, "ls", out)

    def is_same(self, one, other, *tolerance):
        done = subprocess.run([CLI, "diff", one, other, *tolerance], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("equal", done.stdout)


class WithoutAFramework(Runs):
    @classmethod
    def setUpClass(cls):
        cls.folder = build("plain", "")

    def test_cxx_and_c_write_the_same(self):
        self.is_same(self.capture("minimal"), self.capture("minimal_c"))


class LibtorchPrograms:
    environment: str  # whose PyTorch runs the twin
    tolerance: tuple = ()

    def test_the_adapters_own_tests_pass(self):
        self.assertIn("PASSED", run(self.folder / "libtorch_test", TORNASOLE_STRICT="0"))

    def test_the_training_in_python_writes_an_equal_trial(self):
        for optimizer, tolerance in (("sgd", self.tolerance), ("adam", ("--rel", "1e-3", "--abs", "0.05"))):
            with self.subTest(optimizer=optimizer):
                place = pathlib.Path(tempfile.mkdtemp(dir=WORK))
                weights = place / "weights"
                run(python_of(self.environment), HERE / "torch_mlp_twin.py", place / "python", weights, optimizer)
                self.is_same(self.capture("libtorch_mlp", weights, optimizer), place / "python", *tolerance)
                # Without a hook the training ends with the same bits.
                plain = run(self.folder / "libtorch_mlp", place / "none", weights, optimizer, "no-hook")
                self.assertEqual(run(self.folder / "libtorch_mlp", place / "again", weights, optimizer), plain)

    def test_a_training_survives_what_happens_to_its_disk(self):
        place = pathlib.Path(tempfile.mkdtemp(dir=WORK))
        weights, program = place / "weights", self.folder / "libtorch_mlp"
        run(python_of(self.environment), HERE / "torch_mlp_twin.py", place / "python", weights, "sgd")
        plain = run(program, place / "none", weights, "sgd", "no-hook")
        (place / "file").write_text("")
        hung = "rename,renameat,renameat2:delay_enter=20000000"  # the writer's way to publish a step
        cases = (
            ("the directory is removed", [program, place / "removed", weights, "sgd", "remove"], 60),
            ("no file may grow", ["bash", "-c", 'trap "" XFSZ; ulimit -f 1; exec "$@"', "-", program, place / "full",
                                  weights, "sgd"], 60),
            ("the disk hangs", ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"inject={hung}", program,
                                place / "hung", weights, "sgd"], 60),
        )
        for what, command, limit_s in cases:
            with self.subTest(what):
                done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=limit_s,
                                      env={**os.environ, "TORNASOLE_STRICT": "0", "TORNASOLE_CLOSE_WAIT_S": "1"})
                self.assertEqual(done.stdout, plain, done.stderr)  # whole, with the same bits
                self.assertIn(done.returncode, (0, 1))
        refused = subprocess.run([program, place / "file", weights, "sgd"], capture_output=True, text=True)
        self.assertEqual(refused.returncode, 1)
        self.assertIn(str(place / "file"), refused.stderr)

    def test_a_training_that_dies_leaves_a_sound_run(self):
        place = pathlib.Path(tempfile.mkdtemp(dir=WORK))
        run(python_of(self.environment), HERE / "torch_mlp_twin.py", place / "python", place / "weights", "sgd")
        for how, code in (("throw", 4), ("abort", -6), ("exit", 3)):
            with self.subTest(how):
                command = [self.folder / "libtorch_mlp", place / how, place / "weights", "sgd", how]
                self.assertEqual(subprocess.run(command, capture_output=True).returncode, code)
                if how != "throw":
                    run(CLI, "repair", place / how)  # what the process had written and not published when it died
                found = run(CLI, "verify", place / how)
                self.assertIn(": sound", found)
                self.assertRegex(found, r"run +failed")
                if how == "throw":  # two whole steps, and the one that was cut; how far a sudden death gets is chance
                    self.assertRegex(found, r"steps +3\n")
                    self.assertRegex(found, r"partial +1\n")

    def test_the_example_of_a_cnn_runs(self):
        out = self.capture("libtorch_cnn")
        names = self.names(out)
        for name in ("gradient/Net_conv1.weight", "conv1_output_0", "nll_loss_output_0"):
            self.assertIn(name, names)
        self.assertNotIn("conv2_output_0", names)

    def test_the_example_with_threads_runs(self):
        names = self.names(self.capture("libtorch_parallel"))
        for name in ("gradient/Replica0_0.weight", "gradient/Replica2_2.bias", "Replica1_loss_output_0"):
            self.assertIn(name, names)

    def test_the_program_of_the_documents_runs(self):
        self.run_snippet("libtorch", "runs/net")

    def test_the_first_layer_that_a_port_got_wrong_is_named(self):
        place = pathlib.Path(tempfile.mkdtemp(dir=WORK))
        run(python_of(self.environment), ROOT / "examples/python/torch_original.py", place / "original",
            place / "weights")
        run(self.folder / "libtorch_port", place / "port", place / "weights")
        run(self.folder / "libtorch_port", place / "fixed", place / "weights", "fixed")
        self.is_same(place / "original", place / "fixed", "--abs", "1e-5")
        found = subprocess.run([CLI, "diff", place / "original", place / "port", "--abs", "1e-5"],
                               capture_output=True, text=True)
        self.assertEqual(found.returncode, 1)
        self.assertRegex(found.stdout, r"first difference\n\s+tensor\s+norm_output_0\n")


class LibtorchOfTheWheel(LibtorchPrograms, Runs):
    environment = "torch"

    @classmethod
    def setUpClass(cls):
        cls.folder = build("torch-wheel", "libtorch", f"-DTORNASOLE_LIBTORCH_DIR={package_folder('torch', 'torch')}")


class Demo(unittest.TestCase):
    def test_the_demo_with_pytorch_runs(self):
        shown = run(ROOT / "scripts" / "demo_torch.sh", OPTIONS.build, WORK / "demo",
                    CMAKE_CXX_COMPILER_LAUNCHER=shutil.which("ccache") or "")
        self.assertRegex(shown, r"first difference\n\s+tensor\s+norm_output_0\n")
        self.assertIn("\nequal: 2 steps", shown)
        self.assertIn("gradient/Net_conv1.weight", shown)


class LibtorchOfDebian(LibtorchPrograms, Runs):
    # The same version, but of another build, with another library for products of matrices.
    environment = "torch-old"
    tolerance = ("--rel", "1e-3", "--abs", "1e-4")

    @classmethod
    def setUpClass(cls):
        cls.folder = build("torch-debian", "libtorch")


class XgboostPrograms:
    environment: str

    def test_the_adapters_own_tests_pass(self):
        self.assertIn("PASSED", run(self.folder / "xgboost_test", TORNASOLE_STRICT="0"))

    def test_the_training_in_python_writes_an_equal_trial(self):
        twin = pathlib.Path(tempfile.mkdtemp(dir=WORK)) / "run"
        run(python_of(self.environment), HERE / "xgboost_twin.py", twin)
        ours = self.capture("boost_trees")
        self.is_same(ours, twin)
        files = [*(twin / "collections").rglob("*.json"), *(twin / "tornasole").glob("*_model.json")]
        self.assertEqual(len(files), 2)
        for file in files:
            # Of one minor version, Debian has another patch than the environment.
            text = (ours / file.relative_to(twin)).read_text().replace("1.7.4", "1.7.6")
            self.assertEqual(text, file.read_text(), file.name)

    def test_the_program_of_the_documents_runs(self):
        self.run_snippet("xgboost", "runs/boost")


class XgboostOfTheWheel(XgboostPrograms, Runs):
    environment = "xgboost"

    @classmethod
    def setUpClass(cls):
        library = package_folder("xgboost", "xgboost") / "lib" / "libxgboost.so"
        cls.folder = build("xgboost-wheel", "xgboost", f"-DTORNASOLE_XGBOOST_LIBRARY={library}")


class XgboostOfDebian(XgboostPrograms, Runs):
    environment = "xgboost-old"

    @classmethod
    def setUpClass(cls):
        cls.folder = build("xgboost-debian", "xgboost")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for option in ("build", "cmake", "cxx", "cc"):
        parser.add_argument(f"--{option}", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
