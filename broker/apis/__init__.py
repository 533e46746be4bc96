"""Request handlers: one module per API, or a few APIs that belong together, in rooms by family.

A handler is a function `handler(ctx, request)` marked with `@api(RequestClass)`. It returns a response, or None for a
request without a response; one that may wait is a coroutine (`broker.event_loop.waiting`). `registry.BROKER_APIS` and
`CONTROLLER_APIS` list the APIs and their modules, which are imported with the first request. Handlers translate between
messages and the other parts of the broker; the logic of groups, transactions and metadata is in `coord`. Only handlers
get the whole `Broker` (`ctx.broker`): this package may import all others below it (see `broker`), and only `server`
imports it. The dispatcher and what serves all APIs (access, division into parts, forwarding) are directly here.
Produce and Fetch are hot paths: measure with `python -m bench` before and after a change.
"""
