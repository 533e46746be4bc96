"""Planted bugs of what all commands share: screens, questions, settings, completion."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_SCREENS = "tests/cli/screens/test_screens.py"
_PROFILES = "tests/cli/general/test_profiles.py"
_COMPLETION = "tests/cli/general/test_completion.py"

SCREENS = (
    Mutant(
        "tables-ignore-the-width-of-the-screen",
        "barnabas/terminal/tables.py",
        "width = screen.width(sys.stdout) if screen.is_terminal(sys.stdout) else None\n    if title:",
        "width = None\n    if title:",
        _SCREENS + "::test_no_line_is_wider_than_the_screen",
    ),
    Mutant(
        "tables-are-wrapped-in-a-pipe",
        "barnabas/terminal/tables.py",
        "width = screen.width(sys.stdout) if screen.is_terminal(sys.stdout) else None\n    if title:",
        "width = 60\n    if title:",
        _SCREENS + "::test_piped_output_has_a_line_for_each_row",
    ),
    Mutant(
        "titles-are-bold-on-a-dumb-terminal",
        "barnabas/terminal/screen.py",
        'return is_terminal(stream) and os.environ.get("TERM") != "dumb"',
        "return is_terminal(stream)",
        _SCREENS + "::test_titles_are_bold_on_a_terminal_unless_it_is_not_wanted",
    ),
    Mutant(
        "control-characters-of-names-reach-the-terminal",
        "barnabas/terminal/tables.py",
        "    if text.isprintable():\n        return text\n",
        "    return text\n",
        "tests/terminal/test_output.py::test_control_characters_do_not_reach_the_terminal",
    ),
    Mutant(
        "no-answer-is-yes",
        "barnabas/terminal/question.py",
        'if answer.strip().lower() not in ("y", "yes"):',
        'if answer.strip().lower() not in ("", "y", "yes"):',
        "tests/cli/screens/test_dialogue.py::test_a_question_is_asked_and_no_is_the_default",
    ),
    Mutant(
        "the-profile-comes-before-the-environment",
        "barnabas/cli/connect/settings.py",
        "    if text := os.environ.get(known.variable):\n",
        "    if (text := os.environ.get(known.variable)) and name not in profile_settings():\n",
        _PROFILES + "::test_option_before_environment_before_profile_before_default",
    ),
    Mutant(
        "a-link-to-the-users-file-is-replaced",
        "barnabas/cli/profiles.py",
        "target = path.resolve()",
        "target = path",
        _PROFILES + "::test_a_link_stays_a_link",
    ),
    Mutant(
        "completion-loses-the-address-before-an-option",
        "barnabas/cli/completion/shells.py",
        "        if isinstance(resolved, click.Option) and args and args[-1] in resolved.opts:\n",
        "        if False:\n",
        _COMPLETION + "::test_live_names",
    ),
    Mutant(
        "completion-installed-twice",
        "barnabas/cli/completion/install.py",
        "if places.start_up is not None and places.line not in _lines(places.start_up):",
        "if places.start_up is not None:",
        _COMPLETION + "::test_install_adds_one_line_and_uninstall_removes_it",
    ),
    Mutant(
        "a-word-is-broken-on-help-pages",
        "barnabas/cli/command_groups.py",
        "        break_on_hyphens=False,\n",
        "        break_on_hyphens=True,\n",
        "tests/cli/screens/test_one_style.py::test_help_fits_the_screen_and_breaks_no_word",
    ),
)
