"""Commands on a cluster as a whole: configs, features, log directories, transactions, and whether it can be used."""
