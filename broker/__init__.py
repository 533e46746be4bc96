"""The broker: listeners, connections, dispatch, API handlers, waits, background tasks."""
