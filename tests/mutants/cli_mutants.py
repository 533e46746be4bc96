"""Planted bugs of the command line."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TOPICS = "tests/cli/test_topic_administration.py"

CLI = (
    Mutant(
        "patterns-delete-topics-without-confirmation",
        "barnabas/cli/patterns.py",
        "    if guessed and not yes and not is_terminal(sys.stdin):\n",
        "    if False:\n",
        _TOPICS + "::test_patterns_describe_alter_and_delete",
    ),
    Mutant(
        "trim-beyond-the-end-deletes-everything",
        "barnabas/cli/topic/trim.py",
        "        if offset > ends[name, index]:\n",
        "        if False:\n",
        _TOPICS + "::test_trim_beyond_the_end_deletes_nothing",
    ),
    Mutant(
        "topics-deleted-before-all-names-are-checked",
        "barnabas/cli/topic/changes.py",
        "        describe_topics(cluster, found)  # a name that is wrong is reported before anything is deleted\n",
        "",
        _TOPICS + "::test_nothing_is_deleted_when_one_name_is_wrong",
    ),
    Mutant(
        "regular-expressions-match-parts-of-names",
        "barnabas/cli/patterns.py",
        "any(one.fullmatch(name) for one in compiled)",
        "any(one.match(name) for one in compiled)",
        _TOPICS + "::test_lists_match_globs_and_regular_expressions",
    ),
)
