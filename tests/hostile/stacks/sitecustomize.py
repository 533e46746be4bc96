"""Python imports this in a broker under attack: SIGUSR2 writes the stack of every thread to its log.

The healthy client sends the signal when it has waited too long, so that a stall is reported with what it was spent on.
"""

import faulthandler
import signal

faulthandler.register(signal.SIGUSR2, all_threads=True)
