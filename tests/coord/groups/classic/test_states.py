"""G1: the transitions between all 25 pairs of states, as in Kafka's ClassicGroupState."""

from __future__ import annotations

import ast
import inspect
from itertools import product

import pytest

from barnabas.coord.groups.classic import states
from barnabas.coord.groups.classic.group import ClassicGroup
from barnabas.coord.groups.classic.states import GroupState
from barnabas.coord.machine import Moment
from tests.support.cases import for_each

E, P, C, S, D = GroupState
ALLOWED = {(E, P), (P, C), (P, E), (C, S), (C, P), (S, P), (E, D), (P, D), (C, D), (S, D), (D, D)}


@for_each(("old", "new"), list(product(GroupState, repeat=2)))
def test_only_the_steps_of_the_table_can_be_taken(old, new):
    group = ClassicGroup("g")
    group.state = old
    if (old, new) in ALLOWED:
        group.become(new, Moment(1.0, 77))
        assert (group.state, group.previous_state, group.state_since_ms) == (new, old, 77)
    else:
        with pytest.raises(AssertionError):
            group.become(new, Moment(1.0, 77))
        assert group.state is old


def test_every_state_tells_what_it_answers():
    (body,) = [node for node in ast.parse(inspect.getsource(states)).body if isinstance(node, ast.ClassDef)]
    members = [node for node in body.body if isinstance(node, ast.Assign)]
    assert len(members) == len(GroupState)
    for member in members:
        text = body.body[body.body.index(member) + 1]
        assert isinstance(text, ast.Expr)
        for request in ("JoinGroup", "OffsetCommit", "DeleteGroups"):
            assert request in text.value.value, f"{member.targets[0].id} is silent about {request}"
