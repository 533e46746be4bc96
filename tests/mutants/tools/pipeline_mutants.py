"""Bugs in the pipeline: what is tried again, what a user is told, exit codes."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_RETRIES = "tests/pipeline/running/test_retries.py"
_MISTAKES = "tests/pipeline/settings/test_mistakes.py"
_REPORT = "tests/pipeline/running/test_report_and_screen.py"

PIPELINE = (
    Mutant(
        "task-not-tried-again",
        "barnabas/spark/session/spark.py",
        'f"local[{local[1] or 1},{ATTEMPTS}]"',
        'f"local[{local[1] or 1}]"',
        f"{_RETRIES}::test_tasks_of_one_machine_are_tried_again",
    ),
    Mutant(
        "worker-start-not-tried-again",
        "barnabas/spark/run.py",
        "            if attempt == ATTEMPTS:\n",
        "            if attempt:\n",
        f"{_RETRIES}::test_queries_continue_if_a_python_worker_did_not_start",
    ),
    Mutant(
        "java-checked-after-the-broker",
        "barnabas/spark/run.py",
        "        check_machine()\n",
        "        pass\n",
        f"{_MISTAKES}::test_java_is_checked_before_a_broker_is_waited_for",
    ),
    Mutant(
        "silent-broker-like-a-missing-one",
        "barnabas/spark/topics/cluster.py",
        '        if any(_accepts(address) for address in self.bootstrap.split(",")):\n',
        "        if False:\n",
        f"{_MISTAKES}::test_a_broker_that_never_answers",
    ),
    Mutant(
        "reason-without-what-was-held",
        "barnabas/spark/frames/misfits.py",
        "    if misfit.held is None:\n",
        "    if True:\n",
        "tests/pipeline/running/test_totals.py::test_the_totals_of_a_run",
    ),
    Mutant(
        "start-of-the-first-batch-unknown",
        "barnabas/spark/run.py",
        "        totals.begin(checkpoint.first_offsets(",
        "        totals.begin({} and checkpoint.first_offsets(",
        "tests/pipeline/running/test_totals.py::test_the_totals_of_a_run",
    ),
    Mutant(
        "artifacts-in-the-working-directory",
        "barnabas/spark/session/spark.py",
        "    move_artifacts(started)\n",
        "",
        "tests/pipeline/running/test_session.py::test_spark_makes_no_directories_in_the_working_directory",
    ),
    Mutant(
        "java-left-behind",
        "barnabas/spark/session/spark.py",
        "            process.kill()\n            process.wait()\n",
        "            process.poll()\n",
        "tests/pipeline/running/test_java_and_jars.py::test_java_ends_if_the_start_of_spark_is_interrupted",
    ),
    Mutant(
        "files-of-other-runs-counted",
        "barnabas/spark/report/report.py",
        ' if entry["modificationTime"] >= since_ms]',
        "]",
        f"{_REPORT}::test_files_are_counted_from_the_log_of_files",
    ),
)
