def valid_records(
    data: bytes | memoryview,
    pos: int,
    index: int,
    last: int,
    base_timestamp: int,
    earliest: int,
    latest: int,
    needs_keys: bool,
    max_record_size: int,
    /,
) -> tuple[int, int]:
    """Where the valid records from `pos` on end, and the index of the record there, which is at most `last`.

    The record at `pos` has the offset delta `index`. Timestamps are valid from `earliest` to `latest` (ms), and -1.
    """
