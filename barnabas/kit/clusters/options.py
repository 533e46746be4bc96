"""The options that a cluster is opened with. A fork has the options of its parent, but for the seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.kit.errors import ControlError

if TYPE_CHECKING:
    from barnabas.kit.traffic.release import Release
    from barnabas.kit.values import Values


class Options(NamedTuple):
    """The options that a cluster is opened with."""

    keys: Mapping[str, str] = {}
    """Its config keys."""
    seed: int | None = None
    """The seed of its ids: with the requests before, it determines each id."""
    as_version: str | None = None
    """The Kafka version that it answers as, such as 3.9."""
    brokers: int | None = None
    """How many brokers it has, beside a controller; None: one, which is its own controller."""

    @classmethod
    def of(cls, values: Values, others: tuple[str, ...] = ()) -> Options:
        """The options in a request, beside the values that `others` names. ControlError for an invalid value."""
        values.only(("config", *cls._fields[1:], *others))
        options = cls(
            {key: str(value) for key, value in values.mapping("config").items()},
            values.integer("seed", None),
            values.text("as_version", None),
            values.integer("brokers", None),
        )
        if options.seed is not None and options.brokers is not None:
            raise ControlError("seed is for clusters of one broker: what several do at the same time has no order")
        return options

    def release(self) -> Release | None:
        """The Kafka version that it answers as. ControlError for an unknown one."""
        if self.as_version is None:
            return None
        from barnabas.kit.traffic.release import release_named

        return release_named(self.as_version)


USUAL: Final = Options()
