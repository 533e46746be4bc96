"""Planted bugs of what tests the pages, and of what pages for scripts rely on."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_FOUND = "tests/pages/test_runner.py::test_a_page_that_does_not_hold_is_found"

PAGES = (
    Mutant(
        "blocks-of-pages-may-fail",
        "tests/pages/running.py",
        '        if bool(process.returncode) != (block.how == "fails"):\n',
        '        if process.returncode > 100 and block.how != "fails":\n',
        _FOUND,
    ),
    Mutant(
        "outputs-of-pages-may-have-further-lines",
        "tests/pages/outputs.py",
        ".fullmatch(",
        ".match(",
        "tests/pages/test_runner.py::test_outputs_are_compared_as_a_whole",
    ),
    Mutant(
        "environments-of-pages-have-all-extras",
        "tests/pages/environment.py",
        'needed.marker.evaluate({"extra": extra})',
        "True",
        "tests/pages/test_runner.py::test_an_environment_has_what_metadata_asks_for_and_no_more",
    ),
    Mutant(
        "blocks-of-unknown-kinds-are-left-out",
        "tests/support/blocks.py",
        "        if language not in RUN | PARSED:\n",
        "        if False:\n",
        "tests/pages/test_runner.py::test_a_marker_without_meaning_is_refused",
    ),
    Mutant(
        "links-to-missing-headings",
        "tests/pages/test_links.py",
        'elif anchor and file.suffix == ".md" and anchor not in',
        'elif anchor and file.suffix == ".txt" and anchor not in',
        "tests/pages/test_links.py::test_a_broken_link_is_found",
    ),
    Mutant(
        "site-fetches-scripts-from-elsewhere",
        "docs/site/check.py",
        '"script": "src", ',
        "",
        "tests/pages/test_site.py::test_what_a_site_may_not_have_is_found",
    ),
    Mutant(
        "health-does-not-wait",
        "barnabas/cli/admin/health.py",
        "            if time.monotonic() >= until:\n",
        "            if True:\n",
        "tests/cli/general/test_health_wait.py::test_it_waits_for_a_broker_that_starts_later_and_says_so",
    ),
)
