"""The fault sweep: a broker on a disk of which one operation fails, for every operation of several histories.

`session` runs the broker and sends requests until they are answered, `facts` keeps the responses to clients and
compares them with what clients read, `histories` has the work, `sweep` the faults.
`docs/contributing/project-tests.md` has the commands.
"""
