"""Administration: topics, configurations, quotas, log directories, the controller quorum."""
