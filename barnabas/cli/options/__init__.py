"""Options and arguments that several commands have: their declarations (`parameters`) and the values that they take."""
