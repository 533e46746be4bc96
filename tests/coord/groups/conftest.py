from __future__ import annotations

import pytest

from tests.coord.groups.group_driver import Driver


@pytest.fixture
def driver():
    return Driver()
