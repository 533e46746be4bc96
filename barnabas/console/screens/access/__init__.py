"""The screens of security: users, ACLs, quotas, delegation tokens. Each change is done as the user of the session."""
