"""Bugs in containers, in the identity of log directories, and on systems other than Linux."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_MACOS = "tests/platforms/test_macos.py::"
_CONTAINER = "tests/cli/serve/test_container.py::"

PLATFORMS = (
    Mutant(
        "partitions-without-identity-get-a-new-cluster",
        "storage/directories/log_dirs.py",
        "if not log_dir.cluster_id and partition_in(",
        "if False and partition_in(",
        "tests/storage/directories/test_log_dirs.py::test_partitions_without_an_identity_get_no_new_one",
    ),
    Mutant(
        "copies-of-a-log-directory-accepted",
        "storage/directories/log_dirs.py",
        "            self._check_directory_ids()\n",
        "",
        "tests/storage/directories/test_log_dirs.py::test_directories_that_disagree_are_refused",
    ),
    Mutant(
        "two-locks-that-exclude-each-other",
        "storage/system_calls.py",
        '_LOCKS_ARE_SEPARATE = sys.platform == "linux"',
        "_LOCKS_ARE_SEPARATE = True",
        _MACOS + "test_a_second_broker_is_locked_out",
    ),
    Mutant(
        "data-left-in-the-cache-of-a-macs-disk",
        "storage/system_calls.py",
        'if _FULL_SYNC is None else _sync_fully\n"""Make a file\'s data',
        'if _FULL_SYNC is None else os.fsync\n"""Make a file\'s data',
        _MACOS + "test_the_broker_serves_is_killed_and_recovers",
    ),
    Mutant(
        "topics-that-share-a-directory",
        "coord/cluster/changes/topic_changes.py",
        "        if self._defaults.ignores_case:\n",
        "        if False:\n",
        "tests/coord/cluster/test_topics.py::test_topics_that_would_share_a_directory_are_refused",
    ),
    Mutant(
        "inside-listener-printed-first",
        "broker/start/ready.py",
        "return sorted(ways, key=lambda way: not way.is_local)",
        "return ways",
        _CONTAINER + "test_printed_configuration_has_a_block_for_each_listener_the_hosts_first",
    ),
    Mutant(
        "health-checks-the-default-port",
        "barnabas/cli/admin/health.py",
        "bootstrap = broker_address(context, bootstrap, file)",
        "pass",
        _CONTAINER + "test_entry_point_serves_behind_a_port_mapping_and_is_healthy",
    ),
    Mutant(
        "container-advertises-the-host-on-other-listeners",
        "broker/config/load.py",
        "if in_container and LISTENERS.name not in settings:",
        "if in_container:",
        _CONTAINER + "test_listeners_of_the_image",
    ),
    Mutant(
        "doctor-trusts-whoever-answers",
        "barnabas/client/doctor.py",
        "if error.code == ErrorCode.INVALID_REQUEST:",
        "if False:",
        "tests/cli/general/test_doctor.py::test_another_cluster_and_another_broker_behind_the_advertised_address",
    ),
    Mutant(
        "doctor-does-not-follow-advertised-addresses",
        "barnabas/client/doctor.py",
        "            yield from self.follow(broker, described)\n",
        "            pass\n",
        "tests/cli/general/test_doctor.py::test_an_advertised_port_that_is_not_published",
    ),
)
