"""Bugs of authorization: what is decided, what is remembered, and what is not asked."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_RULES = "tests/coord/security/test_standard_authorizer.py::test_"
_ACLS = "tests/broker/security/test_acls.py::test_"
_ACCESS = "tests/broker/security/test_access.py::test_who_may_not_hears"
_GRANTED = "tests/broker/security/test_granted_topics.py::test_"
_MEMBERS = "tests/broker/security/test_acls_of_members.py::test_"

ACCESS: Final = (
    Mutant(
        "a-permission-wins-over-a-denial",
        "coord/security/standard_authorizer.py",
        "        if denying:\n",
        "        if denying and not allowing:\n",
        _RULES + "a_denial_wins_over_every_permission",
    ),
    Mutant(
        "a-denial-denies-what-its-operation-implies",
        "coord/security/standard_authorizer.py",
        "implied = acl.permission == Permission.ALLOW and acl.operation",
        "implied = acl.operation",
        _RULES + "implied_operations_are_allowed_and_not_denied",
    ),
    Mutant(
        "a-resource-with-acls-is-open-without-one-that-matches",
        "coord/security/standard_authorizer.py",
        "return _DENIED if has_acls else self._no_acls",
        "return self._no_acls",
        _RULES + "resources_without_any_rule_are_open_if_so_configured",
    ),
    Mutant(
        "the-last-prefix-of-a-length-takes-the-others-along",
        "coord/security/acl_index.py",
        "            lengths[len(acl.resource_name)] -= 1\n",
        "            lengths[len(acl.resource_name)] = 0\n",
        _RULES + "a_prefix_stays_when_another_of_its_length_goes",
    ),
    Mutant(
        "decisions-are-remembered-when-acls-change",
        "broker/security/authorizer.py",
        "            self.rules.index.add(acl)\n        self.forget()\n",
        "            self.rules.index.add(acl)\n",
        _ACLS + "a_change_of_acls_is_in_effect_when_it_is_answered",
    ),
    Mutant(
        "a-connection-keeps-what-was-granted-when-acls-change",
        "broker/security/authorizer.py",
        "            names.clear()  # connections may have it\n",
        "            pass\n",
        _GRANTED + "an_open_connection_is_decided_by_the_acls_of_now",
    ),
    Mutant(
        "a-connection-keeps-what-was-granted-to-another-principal",
        "broker/net/connection.py",
        "        self.granted_topics: dict[int, set[str | bytes]] = {}\n",
        '        self.granted_topics: dict[int, set[str | bytes]] = getattr(self, "granted_topics", {})\n',
        _GRANTED + "another_principal_does_not_have_what_the_last_one_was_granted",
    ),
    Mutant(
        "ids-are-added-to-a-set-that-was-forgotten",
        "broker/apis/access.py",
        "    ctx.granted_topics[operation] = authorizer.granted_topics(ctx, operation)\n",
        "    if not ctx.granted_topics.get(operation):\n"
        "        ctx.granted_topics[operation] = set()\n"
        "    if not refused:\n"
        "        ctx.granted_topics[operation] |= set(topics)\n",
        _GRANTED + "what_is_remembered_is_bounded_and_still_forgotten",
    ),
    Mutant(
        "acls-are-not-loaded-at-a-start",
        "broker/start/builder.py",
        "        broker.authorizer.load(broker.image)\n",
        "        pass\n",
        _ACLS + "acls_survive_a_restart",
    ),
    Mutant(
        "a-forwarded-request-has-the-rights-of-the-broker",
        "broker/context.py",
        "        return self._principal\n",
        "        return self.connection.principal\n",
        _ACLS + "a_controller_decides_for_the_client_of_a_forwarded_request",
    ),
    Mutant(
        "whole-requests-ask-for-nothing",
        "broker/apis/registry.py",
        "            if requires is not None:\n",
        "            if requires is not None and needs is not None:\n",
        _ACCESS + "_the_error_of_the_table",
    ),
    Mutant(
        "who-claims-to-be-a-follower-reads-everything",
        "broker/apis/fetch/fetch.py",
        "        if replica_of(request) >= 0 and not ctx.is_allowed_on_cluster(Operation.CLUSTER_ACTION):\n",
        "        if replica_of(request) >= 0 and not ctx.broker:\n",
        _ACCESS + "_the_error_of_the_table",
    ),
    Mutant(
        "an-expression-shows-hidden-topics",
        "coord/groups/consumer/regex_resolution.py",
        "filter(self._may_describe, matching(regex, part))",
        "matching(regex, part)",
        _ACLS + "a_regular_expression_stands_for_what_the_member_may_describe",
    ),
    Mutant(
        "a-member-does-not-wait-for-its-new-acls",
        "broker/apis/forwarding.py",
        "        return _acls_are_here(ctx, request, response)\n",
        "        return None\n",
        _MEMBERS + "a_created_acl_is_here_when_the_client_is_answered",
    ),
    Mutant(
        "a-snapshot-brings-no-acls",
        "coord/cluster/metadata_log/image_diff.py",
        "    delta.changed_acls |= _changed(old.acls, new.acls)\n",
        "",
        _MEMBERS + "a_snapshot_replaces_the_acls",
    ),
)
