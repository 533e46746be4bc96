"""Who may use the console: its address, `Host` and `Origin`, log-in and sessions, CSRF tokens, limits, headers."""
