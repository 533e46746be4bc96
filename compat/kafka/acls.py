"""Compares decisions about random ACLs with the decisions of Kafka's StandardAuthorizer.

    python -m compat.kafka.acls 10000 [SEED]

Each set has up to 12 ACLs and 20 questions; some ask for any resource of a type. Prints how many sets were compared,
and the first that is answered differently.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

from barnabas.coord.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from barnabas.coord.security.host_patterns import java_host
from barnabas.coord.security.standard_authorizer import StandardAuthorizer
from compat.kafka.programs import run_program

ACLS, QUESTIONS = 12, 20
USERS = ("User:alice", "User:bob", "User:a:b", "Group:alice")
HOSTS = ("10.1.2.3", "192.168.0.1", "2001:db8::1", "0.0.0.1")
PATTERNS = ("*", "*", "10.1.2.3", "10.0.0.0/8", "10.1.2.0/31", "0.0.0.0/0", "2001:db8:0:0:0:0:0:1", "2001:db8::/33")
NAMES = ("*", "a", "ab", "abc", "abd", "b", "ba", "kafka-cluster", "hardcode")
TYPES = (ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER)
OPERATIONS = tuple(operation for operation in Operation if operation > Operation.ALL)


def sets(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Random sets of ACLs and questions."""
    choose = random.Random(seed)
    for _ in range(count):
        acls = {
            Acl(
                choose.choice(TYPES),
                choose.choice(NAMES),
                choose.choice((PatternType.LITERAL, PatternType.PREFIXED)),
                choose.choice((*USERS, "User:*", "User:*")),
                choose.choice(PATTERNS),
                choose.choice((*OPERATIONS, Operation.ALL, Operation.ALL, Operation.READ, Operation.WRITE)),
                choose.choice((Permission.ALLOW, Permission.ALLOW, Permission.DENY)),
            )
            for _ in range(choose.randint(0, ACLS))
        }
        yield {
            "super_users": choose.choice(("", "", "User:bob", "User:root; User:bob")),
            "allows": choose.choice(("false", "true")),
            "acls": [list(acl) for acl in acls],
            "questions": [_question(choose) for _ in range(QUESTIONS)],
        }


def _question(choose: random.Random) -> list[Any]:
    name = None if choose.random() < 0.2 else choose.choice((*NAMES, "abcd", "c"))
    operation = choose.choice((*OPERATIONS, Operation.READ, Operation.DESCRIBE, Operation.WRITE))
    return [choose.choice(USERS), choose.choice(HOSTS), operation, choose.choice(TYPES), name]


def ours(acl_set: dict[str, Any]) -> str:
    """Our answers to a set: a digit for each question, 1 for allowed."""
    users = [user.strip() for user in acl_set["super_users"].split(";") if user]
    authorizer = StandardAuthorizer(users, allows_without_acls=acl_set["allows"] == "true")
    for acl in acl_set["acls"]:
        authorizer.index.add(Acl(*acl))
    return "".join(str(int(_is_allowed(authorizer, *question))) for question in acl_set["questions"])


def _is_allowed(
    authorizer: StandardAuthorizer,
    user: str,
    host: str,
    operation: Operation,
    kind: ResourceType,
    name: str | None,
) -> bool:
    if name is None:
        return authorizer.decide_by_resource_type(user, java_host(host), operation, kind)
    return authorizer.decide(user, java_host(host), operation, kind, name).is_allowed


def kafkas(acl_sets: list[dict[str, Any]]) -> list[str]:
    """The answers of Kafka's class to all sets."""
    lines = run_program("Acls", stdin="".join(json.dumps(acl_set) + "\n" for acl_set in acl_sets))
    return [line.removeprefix("answers ") for line in lines if line.startswith("answers ")]


def differences(count: int, seed: int) -> list[str]:
    """A sentence for each set that is answered differently."""
    acl_sets = list(sets(count, seed))
    answers = kafkas(acl_sets)
    assert len(answers) == count, f"{len(answers)} answers to {count} sets"
    return [
        f"{json.dumps(acl_set)}: Kafka {theirs}, Barnabas {own}"
        for acl_set, theirs in zip(acl_sets, answers, strict=True)
        if theirs != (own := ours(acl_set))
    ]


def main(arguments: list[str]) -> int:
    """Compare so many sets; 1 if any differs."""
    count = int(arguments[0])
    seed = int(arguments[1]) if len(arguments) > 1 else 0
    different = differences(count, seed)
    print(f"{count} sets with {count * QUESTIONS} questions: {len(different)} answered differently")
    for sentence in different[:1]:
        print(sentence)
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
