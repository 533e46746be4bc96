"""Who may ask and change: sessions, tokens against CSRF, and the headers of every response."""
