"""Makes a Python as much like one on Windows as the first lines of a command need: modules are missing."""

import os  # noqa: F401 - what chooses by sys.platform is imported before it changes
import sys

for name in ("fcntl", "grp", "pwd", "resource", "termios", "tty", "trio", "click"):
    sys.modules[name] = None
sys.platform = "win32"
