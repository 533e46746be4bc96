"""Shell completion: the scripts of the shells, their installation, and the values that they ask for.

A shell runs `barnabas` with `_BARNABAS_COMPLETE` for each press of TAB; click finds the parameter at the cursor, and
`values` what it may be.
"""
