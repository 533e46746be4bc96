"""What a leader keeps of followers and readers: ISR, high watermark, waits for offsets, fetch sessions."""
