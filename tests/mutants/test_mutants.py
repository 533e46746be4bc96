"""Every mutant applies to the current source, and its test exists. `python -m tests.mutants` runs them."""

from __future__ import annotations

import ast
import functools
import shutil
from pathlib import Path

from tests.mutants.all import MUTANTS
from tests.mutants.mutant import ROOT, Mutant
from tests.support.cases import for_each
from tests.support.source import statements


@for_each("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_bug_can_be_planted_and_its_test_exists(mutant: Mutant, tmp_path: Path) -> None:
    target = tmp_path / mutant.file
    target.parent.mkdir(parents=True)
    shutil.copy(ROOT / mutant.file, target)
    mutant.apply(tmp_path)
    compile(target.read_text(), mutant.file, "exec")
    test_file, _, test_name = mutant.test.partition("::")
    assert test_name.rpartition("::")[2] in defined_names(test_file)


@functools.cache
def defined_names(file: str) -> set[str]:
    """The functions, classes and variables of a module."""
    names = set()
    for node in statements(ast.parse((ROOT / file).read_text())):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Assign(targets=[ast.Name(name)]):
                names.add(name)
    return names


def test_names_are_used_once() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(names) == len(set(names))
