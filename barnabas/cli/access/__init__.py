"""Commands on users, ACLs, quotas, delegation tokens and certificates."""
