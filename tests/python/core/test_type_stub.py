"""The stub of the engine, which type checkers read in place of the module."""

import ast
import builtins
import inspect
import pathlib

import pytest

import tornasole
from tornasole import _engine

STUB = pathlib.Path(_engine.__file__).with_name("_engine.pyi")


@pytest.fixture(scope="module")
def tree():
    return ast.parse(STUB.read_text())


def members(body):
    """Names that a module or class defines: functions, classes, attributes."""
    names = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
    return names


def test_the_package_says_that_it_is_typed():
    assert pathlib.Path(tornasole.__file__).with_name("py.typed").exists()


def test_everything_public_is_in_it(tree):
    public = {name for name in vars(_engine) if not name.startswith("_")}
    assert {"Hook", "Trial", "StepWriter", "stats"} <= public
    assert public - members(tree.body) == set()
    assert members(tree.body) - public <= {"__version__"}


def test_classes_have_their_methods(tree):
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    found = {name: kind for name, kind in vars(_engine).items() if inspect.isclass(kind)}
    assert classes.keys() == found.keys()
    for name, kind in found.items():
        public = {attribute for attribute in vars(kind) if not attribute.startswith("_")}
        assert members(classes[name].body) >= public, name


def test_annotations_name_what_is_there(tree):
    known = members(tree.body) | set(vars(builtins))
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            known |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert len(functions) > 50
    for function in functions:
        arguments = function.args.args + function.args.kwonlyargs
        if not function.name.startswith("__"):  # the interpreter's own have no types
            assert function.returns is not None, function.name
        for annotation in filter(None, [function.returns, *(argument.annotation for argument in arguments)]):
            used = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
            assert used <= known, f"{function.name}: {used - known}"


# What users' scripts import: type checkers see nothing of a function without any annotation.
SPOKEN_OF = "exceptions core/collection core/hook core/json_text core/reduction_config core/save_config core/tensor"
SPOKEN_OF += " core/writer analysis/utils/__init__ checks modes pytorch/singleton_utils/__init__ trials/trial"
SPOKEN_OF += " trials/utils/__init__"


@pytest.mark.parametrize("module", SPOKEN_OF.split())
def test_functions_that_users_call_say_what_they_return(module):
    source = (pathlib.Path(tornasole.__file__).parent / f"{module}.py").read_text()
    body = ast.parse(source).body
    for node in [*body, *(member for kind in body if isinstance(kind, ast.ClassDef) for member in kind.body)]:
        if isinstance(node, ast.FunctionDef) and (not node.name.startswith("_") or node.name == "__init__"):
            assert node.returns is not None or "setter" in ast.dump(node), node.name
