"""T2: the transitions of Kafka's TransactionState, all 64 pairs, and EndTxn in each state."""

from __future__ import annotations

import ast
import inspect
from itertools import product

import pytest

from barnabas.coord.machine import Moment
from barnabas.coord.transactions import records, states
from barnabas.coord.transactions.states import BY_LOG_ID, IDLE, TransactionState
from barnabas.coord.transactions.transaction import Transaction
from barnabas.wire.errors import ErrorCode
from tests.coord.transactions.transaction_driver import T0, Driver
from tests.support.cases import for_each

E, ON, PC, PA, CC, CA, D, F = TransactionState
WRITTEN = (E, ON, PC, PA, CC, CA)
ALLOWED = {
    *((old, E) for old in (E, CC, CA)),
    *((old, ON) for old in (ON, E, CC, CA)),
    (ON, PC),
    *((old, PA) for old in (ON, F, E, CC, CA)),
    (PC, CC),
    (PA, CA),
    *((old, D) for old in (E, CC, CA)),
    (ON, F),
}


@for_each(("old", "new"), list(product(TransactionState, repeat=2)))
def test_the_transitions_are_those_of_kafka(old, new):
    assert (old in states.PREDECESSORS[new]) == ((old, new) in ALLOWED)


def transaction_in(state):
    partitions = frozenset() if state in IDLE else frozenset({T0})
    return Transaction(5, 3, 60_000, state, 1_700_000_000_000, partitions, 1_700_000_000_000)


@for_each(("old", "new"), list(product(WRITTEN, repeat=2)))
def test_replay_checks_transitions(old, new):
    driver = Driver()
    coordinator, at = driver.fresh(), Moment(0.0, 1_700_000_000_000)
    coordinator.replay(*records.transaction_record("x", transaction_in(old), 1), at)
    coordinator.loaded(at)
    record = records.transaction_record("x", transaction_in(new), 1)
    if (old, new) in ALLOWED:
        coordinator.replay(*record, at)
        assert coordinator.transactions["x"].state is new
    else:
        with pytest.raises(AssertionError):
            coordinator.replay(*record, at)


def test_the_state_numbers_are_those_of_kafka():
    assert [state.log_id for state in (E, ON, PC, PA, CC, CA, D, F)] == list(range(8))
    assert all(BY_LOG_ID[state.log_id] is state for state in TransactionState)


@for_each("state", WRITTEN)
@for_each("commit", [True, False])
def test_end_before_kip_890(state, commit):
    """The epoch does not change: a retry is recognized by the outcome only."""
    answers = {
        (ON, True): ErrorCode.NONE,
        (ON, False): ErrorCode.NONE,
        **{(state, commit): ErrorCode.CONCURRENT_TRANSACTIONS for state in (PC, PA) for commit in (True, False)},
        (CC, True): ErrorCode.NONE,
        (CA, False): ErrorCode.NONE,
    }
    driver = at_state(state)
    assert driver.end((5, 3), commit, version=4) == answers.get((state, commit), ErrorCode.INVALID_TXN_STATE)
    for epoch in (2, 4):
        assert at_state(state).end((5, epoch), commit, version=4) == ErrorCode.PRODUCER_FENCED
        assert at_state(state).end((5, epoch), commit, version=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert at_state(state).end((6, 3), commit, version=4) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


FENCED, NONE, ITS = ErrorCode.PRODUCER_FENCED, ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE
WAIT = ErrorCode.CONCURRENT_TRANSACTIONS
END_V2 = {  # by state: retried abort, abort, retried commit, commit
    E: (FENCED, NONE, FENCED, ITS),
    ON: (FENCED, NONE, FENCED, NONE),
    PC: (WAIT, WAIT, WAIT, WAIT),
    PA: (WAIT, WAIT, WAIT, WAIT),
    CC: (ITS, NONE, NONE, ITS),
    CA: (NONE, NONE, ITS, ITS),
}


@for_each("state", WRITTEN)
def test_end_of_kip_890(state):
    """A retry has the epoch before the last bump (T7); the table is the same as in Kafka's coordinator.

    In the prepared states any epoch gets CONCURRENT_TRANSACTIONS: a producer that aborts before it has sent anything of
    its next transaction sends the new epoch, and must not be fenced.
    """
    got = tuple(at_state(state).end((5, epoch), commit) for commit in (False, True) for epoch in (2, 3))
    assert got == END_V2[state]
    for epoch in (1, 4):
        assert at_state(state).end((5, epoch), True) == (WAIT if state in (PC, PA) else FENCED)


def at_state(state):
    driver = Driver()
    driver.log.append(records.transaction_record("x", transaction_in(state), 1))
    driver.restart()
    return driver


def test_every_state_documents_its_responses():
    classes = [node for node in ast.parse(inspect.getsource(states)).body if isinstance(node, ast.ClassDef)]
    body = next(node.body for node in classes if node.name == "TransactionState")
    members = [node for node in body if isinstance(node, ast.Assign)]
    assert len(members) == len(TransactionState)
    for member in members:
        text = body[body.index(member) + 1]
        assert isinstance(text, ast.Expr)
        for request in ("InitProducerId", "AddPartitionsToTxn", "EndTxn"):
            assert request in text.value.value, f"{member.targets[0].id} does not document {request}"
