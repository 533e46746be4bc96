"""The families of requests: each module adds requests of some APIs to a world, and notes what they change."""
