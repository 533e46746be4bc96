"""Clients of consumer and streams groups: one that does what the protocol requires, and one in a bad network."""

from __future__ import annotations

from barnabas.wire.errors import ErrorCode

JOIN_AGAIN = {
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNRELEASED_INSTANCE_ID,
}


class ModernClient:
    """A member that revokes, confirms that, then takes what it is given. Subclasses have partitions or tasks."""

    def nothing(self):
        """What a member has that has nothing."""
        raise NotImplementedError

    def request(self):
        """The fields of the next heartbeat; `owned` None: no change."""
        raise NotImplementedError

    def given(self, response):
        """The assignment in a response, or None."""
        raise NotImplementedError

    def reconcile(self):
        """Revoke and take what the last assignment says."""
        raise NotImplementedError

    def send(self, fields):
        return self.driver.beat(self.member_id, self.epoch, **fields)

    def reset(self):
        self.epoch = 0
        self.owned = self.nothing()
        self.target = None
        self.sends_all = True
        self.sent_owned = self.nothing()
        self.interval_ms = None

    def beat(self):
        """Send a heartbeat and handle the response; returns it."""
        fields = self.request()
        response = self.send(fields)
        self.take(response, fields)
        return response

    def take(self, response, fields):
        if response.error_code:
            return
        self.sends_all = False
        if fields["owned"] is not None:
            self.sent_owned = fields["owned"]
        self.epoch = response.member_epoch
        self.interval_ms = response.heartbeat_interval_ms
        target = self.given(response)
        if target is not None:
            self.target = target


class Wanderer:
    """Makes a client one in a bad network, that dies, leaves and returns, and revokes bit by bit."""

    changes_subscription = False

    def wander(self, random, index):
        """Call this first. Every third client is a static member; returns its instance id or None."""
        self.random, self.index, self.incarnation = random, index, 0
        return f"i{index}" if index % 3 == 0 else None

    def choose(self):
        """Choose another subscription."""
        raise NotImplementedError

    def surplus(self):
        """The partitions or tasks that are to be revoked."""
        raise NotImplementedError

    def revoke(self, some):
        """Revoke some of it."""
        raise NotImplementedError

    def next_id(self):
        self.incarnation += 1
        return f"m{self.index}-{self.incarnation}"

    def vanish(self):
        """The process dies, and a new one starts."""
        self.reset()
        self.member_id = self.next_id()

    def leave(self):
        epoch = -2 if self.instance_id is not None and self.random.random() < 0.7 else -1
        self.driver.beat(self.member_id, epoch, instance_id=self.instance_id)
        self.vanish()

    def step(self):
        dice = self.random.random()
        if dice < 0.02:
            self.vanish()
        elif dice < 0.04:
            self.leave()
        elif dice < 0.07 and self.changes_subscription:
            self.choose()
        elif dice < 0.35 and self.target is not None and not self.sends_all:
            # While a response is missing, a member takes nothing: the heartbeat may have revoked what it never had.
            self.reconcile_some()
        else:
            self.beat_somehow()

    def reconcile_some(self):
        """Revoke some of the surplus; take the new ones once all of the surplus is revoked."""
        surplus = self.surplus()
        if surplus:
            self.revoke(self.random.sample(surplus, self.random.randrange(1, len(surplus) + 1)))
        else:
            self.reconcile()

    def beat_somehow(self):
        """Send a heartbeat; request or response may be lost."""
        fields = self.request()
        fate = self.random.random()
        if fate < 0.1:  # the request is lost
            self.sends_all = True
            return
        response = self.send(fields)
        if fate < 0.2:  # the response is lost
            self.sends_all = True
            return
        if response.error_code in JOIN_AGAIN:
            self.reset()
        elif response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE:  # the append has failed
            self.sends_all = True
        elif response.error_code:
            assert response.error_code == ErrorCode.FENCED_INSTANCE_ID, response
            self.vanish()
        else:
            assert response.member_epoch >= self.epoch, "a member's epoch only grows"
            self.take(response, fields)


def last_records(log):
    """The last record of each key, without tombstones: a log that was compacted."""
    last = {}
    for key, value in log:
        last.pop(key, None)
        if value is not None:
            last[key] = value
    return list(last.items())
