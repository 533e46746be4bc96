"""Modules are imported when a test uses them: collecting a file does not import them."""

from __future__ import annotations

import sys

import pytest

from tests.support.lazy import lazy, skip_without

NAME = "zipapp"  # of the standard library; no other module imports it
late = lazy(NAME)


def test_the_first_use_imports_it() -> None:
    assert NAME not in sys.modules
    error = late.ZipAppError
    assert sys.modules[NAME].ZipAppError is error
    with pytest.raises(error):
        late.create_archive("/nowhere")


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'zipapp' has no attribute 'nothing'"):
        _ = late.nothing


def test_a_file_is_skipped_without_what_it_needs() -> None:
    skip_without(NAME, "json")
    with pytest.raises(pytest.skip.Exception, match="no_such_package is not installed"):
        skip_without("json", "no_such_package")
