"""ACLs, SASL with SCRAM credentials, delegation tokens."""
