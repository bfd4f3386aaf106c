#!/usr/bin/env python3
"""Holds the table of who may include whom, and the rules of the tree that no compiler checks.

Every rule is a function from a tree to a list of findings. The first test class holds them against this repository,
the second against a made-up tree that breaks each one, so that a rule which finds nothing is known to look.
"""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Folder -> the folders it may include besides itself, base and tensor.
TABLE = {
    "base": set(),
    "tensor": set(),
    "config": set(),
    "store": set(),
    "reduce": set(),
    "format": set(),
    "pattern": set(),
    "plan": {"config", "pattern"},
    "tensorboard": {"pattern", "reduce", "format", "store"},
    "capture": {"config", "pattern", "plan", "reduce", "format", "store", "tensorboard"},
    "trial": {"config", "pattern", "reduce", "format", "store"},
    "rules": {"config", "pattern", "reduce", "format", "store", "trial"},
    "inprocess": {"capture", "trial", "rules"},
    "report": {"rules"},
    "tools": {"format", "store", "reduce", "pattern", "tensorboard", "trial", "capture"},
    "cli": {"config", "pattern", "plan", "reduce", "trial", "rules", "report", "tools"},
    "server": {"config", "pattern", "plan", "reduce", "trial", "rules", "report", "tools"},
}
OPEN_TO_ALL = {"base", "tensor"}
# Public header -> the folder that implements it.
PUBLIC = {
    "result.h": "base",
    "export.h": "base",
    "mode.h": "base",
    "tensor.h": "tensor",
    "views.h": "tensor",
    "reduction.h": "tensor",
    "options.h": "config",
    "trial.h": "trial",
    "rule.h": "rules",
    "rule_actions.h": "rules",
    "rule_configuration.h": "rules",
    "check.h": "rules",
    "invariants.h": "rules",
    "inprocess_rules.h": "inprocess",
    "stats.h": "reduce",
    "hook.h": "capture",
    "checkpoint_files.h": "capture",
    "front_end.h": "capture",
    "step_writer.h": "capture",
    "bucket.h": "capture",
    "model.h": "format",
    "stored_events.h": "format",
    "c.h": "capture",
}
# These see the public headers alone, all of them.
OUTSIDERS = ("adapters", "python", "examples")
# Turns an exception of a library into an Error, for which it has to be thrown again.
RETHROWER = pathlib.PurePath("src/base/errors.cc")
ENVIRONMENT_READER = pathlib.PurePath("src/config/environment.cc")
# Many folders have one of these, by convention of the tool that reads it.
COMMON_NAMES = {"CMakeLists.txt", "README.md", "__init__.py", "conftest.py"}
CODE = (".cc", ".h", ".c")


def allowed(folder):
    extra = set() if folder == "base" else {"base"} if folder == "tensor" else OPEN_TO_ALL
    return TABLE[folder] | extra | {folder}


def code_files(tree, *folders):
    for folder in folders:
        for path in sorted((tree / folder).rglob("*")):
            if path.suffix in CODE and "third_party" not in path.parts:
                yield path


def without_comments(text, strings=False):
    """The code with comments blanked, and literals too if asked; line numbers stay."""
    literal = r'R"([^(]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\''
    pattern = re.compile(literal + r"|//[^\n]*|/\*.*?\*/", re.DOTALL)

    def blank(match):
        is_comment = match.group(0).startswith(("//", "/*"))
        return re.sub(r"[^\n]", " ", match.group(0)) if is_comment or strings else match.group(0)

    return pattern.sub(blank, text)


def includes(path):
    """(line, name, quoted) of every include."""
    text = without_comments(path.read_text())
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.match(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', line):
            yield number, match.group(1) or match.group(2), match.group(1) is not None


def owner_of(tree, name):
    """The folder a quoted include belongs to; None if it is no file of the project."""
    first, _, rest = name.partition("/")
    if first == "tornasole":
        return PUBLIC.get(rest)
    return first if first in TABLE and (tree / "src" / name).is_file() else None


def check_includes(tree):
    findings = []
    files = [(path, path.relative_to(tree).parts[1]) for path in code_files(tree, "src")]
    files += [(path, PUBLIC.get(path.name)) for path in code_files(tree, "include")]
    for path, folder in files:
        where = path.relative_to(tree)
        if folder not in TABLE:
            findings.append(f"{where}: belongs to no folder of the table")
            continue
        for line, name, quoted in includes(path):
            if not quoted and name.partition("/")[0] not in {*TABLE, "tornasole"}:
                continue
            owner = owner_of(tree, name) if quoted else None
            if owner is None:
                findings.append(f"{where}:{line}: {name} is no quoted path from src/ or include/ to a file there")
            elif owner not in allowed(folder):
                findings.append(f"{where}:{line}: {folder} may not include {name}, which is of {owner}")
    return findings


def check_outsiders(tree):
    findings = []
    of_adapters = {path.name for path in tree.glob("adapters/*/include/tornasole/*.h")}
    for path in code_files(tree, *OUTSIDERS):
        for line, name, quoted in includes(path):
            is_public = name.startswith("tornasole/") and name.removeprefix("tornasole/") in {*PUBLIC, *of_adapters}
            is_own = quoted and any((base / name).is_file() for base in (path.parent, *path.parent.parents[:3]))
            inner = name.partition("/")[0] in TABLE and (tree / "src" / name).is_file()
            if inner or (quoted and not is_public and not is_own):
                findings.append(f"{path.relative_to(tree)}:{line}: may include public headers only, not {name}")
    return findings


def check_public_headers_are_free(tree):
    """A user needs nothing but a compiler: the headers name the C and C++ libraries alone."""
    findings = []
    for path in code_files(tree, "include"):
        for line, name, quoted in includes(path):
            if not quoted and not re.fullmatch(r"[a-z0-9_]+(\.h)?", name):
                findings.append(f"{path.relative_to(tree)}:{line}: a public header may not need {name}")
    return findings


def linked_folders(text):
    """The folders that a CMakeLists.txt links, whichever command says so."""
    text = re.sub(r"#[^\n]*", "", text)
    linked = set()
    for arguments in re.findall(r"\btornasole_folder\s*\(([^)]*)\)", text):
        taking = False
        for word in arguments.split():
            if word in ("SOURCES", "PRIVATE_LINKS", "LINKS"):
                taking = word == "LINKS"
            elif taking:
                linked.add(word)
    for arguments in re.findall(r"\btarget_link_libraries\s*\(([^)]*)\)", text):
        linked |= {word.removeprefix("tornasole_") for word in arguments.split()[1:]} & TABLE.keys()
    return linked


def check_links(tree):
    findings = []
    present = {path.parent.name for path in (tree / "src").glob("*/CMakeLists.txt")}
    for folder in sorted(present):
        where = f"src/{folder}/CMakeLists.txt"
        if folder not in TABLE:
            findings.append(f"{where}: {folder} is not in the table")
            continue
        text = (tree / where).read_text()
        linked = linked_folders(text) - {folder}
        for extra in sorted(linked - allowed(folder)):
            findings.append(f"{where}: links {extra}, which is not in its row")
        # A folder of the row that is not written yet cannot be linked.
        for absent in sorted((TABLE[folder] & present) - linked):
            findings.append(f"{where}: does not link {absent}, which is in its row")
        for source in sorted((tree / "src" / folder).rglob("*.cc")):
            name = source.relative_to(tree / "src" / folder).as_posix()
            if not re.search(rf"(?<![\w/]){re.escape(name)}(?![\w.])", text):
                findings.append(f"{where}: does not list {name}")
    return findings


def find_word(tree, folders, pattern, message, exempt=()):
    findings = []
    for path in code_files(tree, *folders):
        where = path.relative_to(tree)
        if where in exempt:
            continue
        for number, line in enumerate(without_comments(path.read_text(), strings=True).splitlines(), 1):
            if re.search(pattern, line):
                findings.append(f"{where}:{number}: {message}")
    return findings


def check_environment(tree):
    message = f"the environment is read in {ENVIRONMENT_READER} alone"
    return find_word(tree, ("src", "include", "adapters"), r"\b(getenv|secure_getenv|environ)\b", message,
                     exempt=(ENVIRONMENT_READER,))


def check_throw(tree):
    folders = ("src", "include", "adapters", "examples")
    findings = find_word(tree, folders, r"\bthrow\b(?!\s*;)", "throw belongs in python/ alone")
    return findings + find_word(tree, folders, r"\bthrow\s*;", f"only {RETHROWER} looks at what is in flight",
                                exempt=(RETHROWER,))


def check_headers_compile(tree):
    findings = []
    for path in code_files(tree, "include"):
        languages = [("c++", "c++20", "g++")]
        if path.name == "c.h":
            languages.append(("c", "c11", "gcc"))
        for language, standard, compiler in languages:
            command = [compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
                       "-I", tree / "include", "-x", language, "-"]
            source = f'#include "{path.relative_to(tree / "include").as_posix()}"\n'
            done = subprocess.run(command, input=source, capture_output=True, text=True)
            if done.returncode:
                findings.append(f"{path.relative_to(tree)}: does not compile alone as {standard}: {done.stderr}")
    return findings


def check_names_are_unique(tree):
    skipped = {"build", "corpus", "golden", "fixtures", "third_party", "node_modules"}
    seen = {}
    findings = []
    for path in sorted(tree.rglob("*")):
        parts = path.relative_to(tree).parts
        if any(part in skipped or part.startswith((".", "build-", "__")) for part in parts[:-1]):
            continue
        if not path.is_file() or path.name in COMMON_NAMES:
            continue
        if parts[0] == "python" and path.suffix == ".py":
            continue  # a module is known by its package too, and its name is part of the API
        if path.suffix not in (*CODE, ".py", ".sh", ".cmake", ".md"):
            continue
        if (first := seen.setdefault(path.name, parts)) != parts:
            findings.append(f"{'/'.join(parts)}: has the name of {'/'.join(first)}")
    return findings


class ThisRepository(unittest.TestCase):
    maxDiff = None

    def holds(self, check):
        findings = check(ROOT)
        self.assertFalse(findings, "\n" + "\n".join(findings))

    def test_every_include_is_in_the_table(self):
        self.holds(check_includes)

    def test_adapters_bindings_and_examples_see_the_public_headers_alone(self):
        self.holds(check_outsiders)

    def test_public_headers_need_no_other_library(self):
        self.holds(check_public_headers_are_free)

    def test_every_folder_links_its_row_and_lists_its_sources(self):
        self.holds(check_links)

    def test_the_environment_is_read_in_one_file(self):
        self.holds(check_environment)

    def test_nothing_throws_outside_python(self):
        self.holds(check_throw)

    def test_every_public_header_compiles_alone(self):
        self.holds(check_headers_compile)

    def test_file_names_are_unique(self):
        self.holds(check_names_are_unique)


BAD_TREE = {
    "include/tornasole/result.h": '#pragma once\n#include <fmt/format.h>\n#include "tornasole/hook.h"\n',
    "include/tornasole/hook.h": "#pragma once\nstd::string name();\n",
    "include/tornasole/secret.h": "#pragma once\n",
    "src/base/bytes.h": "#pragma once\n",
    "src/base/errors.cc": "void again() { throw; }\n",
    "src/config/CMakeLists.txt": "tornasole_folder(config\n  SOURCES config.cc\n  LINKS base plan)\n",
    "src/config/config.h": '#include "plan/plan.h"\n// #include "store/store.h"\n#include "base/bytes.h"\n',
    "src/config/forgotten.cc": '#include <plan/plan.h>\n#include "nowhere.h"\n#include <vector>\n',
    "src/config/environment.cc": 'const char* home = getenv("HOME");\n',
    "src/plan/CMakeLists.txt": "tornasole_folder(plan\n  SOURCES plan.cc  # LINKS config\n  LINKS base)\n",
    "src/plan/plan.h": "#pragma once\n",
    "src/plan/plan.cc": 'auto a = getenv("A");\n// getenv throw\nauto b = "throw getenv";\nvoid f() { throw 1; }\nvoid g() { throw; }\n',
    "examples/peek.cc": '#include "plan/plan.h"\n#include "tornasole/hook.h"\n#include <vector>\n',
    "tests/plan/plan.cc": "int x;\n",
    "tests/golden/plan.cc": "int x;\n",
}


class AMadeUpBadTree(unittest.TestCase):
    def setUp(self):
        self.tree = pathlib.Path(tempfile.mkdtemp(prefix="layering-"))
        self.addCleanup(shutil.rmtree, self.tree)
        for name, text in BAD_TREE.items():
            path = self.tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def finds(self, check, *starts):
        findings = check(self.tree)
        self.assertEqual(len(findings), len(starts), findings)
        for start in starts:
            self.assertTrue(any(finding.startswith(start) for finding in findings), (start, findings))

    def test_includes_outside_the_table_are_found(self):
        self.finds(
            check_includes,
            "src/config/config.h:1: config may not include plan/plan.h",
            "src/config/forgotten.cc:1: plan/plan.h is no quoted path",
            "src/config/forgotten.cc:2: nowhere.h is no quoted path",
            "include/tornasole/result.h:3: base may not include tornasole/hook.h",
            "include/tornasole/secret.h: belongs to no folder",
        )

    def test_an_example_that_looks_inside_is_found(self):
        self.finds(check_outsiders, "examples/peek.cc:1: may include public headers only")

    def test_a_public_header_that_needs_a_library_is_found(self):
        self.finds(check_public_headers_are_free, "include/tornasole/result.h:2")

    def test_wrong_links_and_forgotten_sources_are_found(self):
        self.finds(
            check_links,
            "src/config/CMakeLists.txt: links plan",
            "src/config/CMakeLists.txt: does not list forgotten.cc",
            "src/config/CMakeLists.txt: does not list environment.cc",
            "src/plan/CMakeLists.txt: does not link config",
        )

    def test_a_second_reader_of_the_environment_is_found(self):
        self.finds(check_environment, "src/plan/plan.cc:1")

    def test_a_throw_is_found_unless_in_a_comment_or_text(self):
        self.finds(check_throw, "src/plan/plan.cc:4", "src/plan/plan.cc:5")

    def test_a_header_that_does_not_compile_alone_is_found(self):
        self.finds(check_headers_compile, "include/tornasole/hook.h: does not compile alone")

    def test_a_name_used_twice_is_found(self):
        self.finds(check_names_are_unique, "tests/plan/plan.cc: has the name of src/plan/plan.cc")


if __name__ == "__main__":
    unittest.main()
