"""Linear matrix inequalities with cvxpy: they propose certificates, which other rooms prove.

This is the only room that imports cvxpy, which takes more than a second: import it when a
certificate is searched for, not before.
"""
