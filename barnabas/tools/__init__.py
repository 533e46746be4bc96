"""Commands' parts without a client: `dump` reads files, `secure` makes certificates, `takeover` checks directories."""
