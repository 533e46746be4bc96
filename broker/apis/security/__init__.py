"""Authentication of connections, ACLs, SCRAM credentials, delegation tokens."""
