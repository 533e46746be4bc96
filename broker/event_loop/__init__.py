"""The event loop as the broker's parts use it: clocks, timers, work between turns, threads for disks, coroutines."""
