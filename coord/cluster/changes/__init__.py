"""What operators change: topics, configs, ACLs, quotas and features; each request becomes metadata records."""
