"""Chooses how sockets are polled: epoll on Linux, elsewhere the best selector of `selectors`."""

from __future__ import annotations

import sys

if sys.platform == "linux":
    from barnabas.broker.net.polling.epoll_poller import EpollPoller as FastestPoller
else:
    from barnabas.broker.net.polling.selector_poller import SelectorPoller as FastestPoller

__all__ = ["FastestPoller"]
