"""One module an API family, imported when its first request comes. Names are those of `wire.messages`."""
