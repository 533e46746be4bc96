"""The start of a broker: limits, directories, its parts in order, the first users, the ready line, later imports."""
