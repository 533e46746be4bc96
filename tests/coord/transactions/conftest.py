from __future__ import annotations

import pytest

from tests.coord.transactions.transaction_driver import Driver


@pytest.fixture
def driver():
    return Driver()
