"""The requests of a broker's clients, as its channel tells them: decoded here, kept in a bounded ring."""
