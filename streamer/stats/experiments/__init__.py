"""Experiments: from exact sums over users to a verdict. Pure; docs/experiments_statistics.md.

The unit is the user, who was assigned to an arm as a whole: all that is compared are sums over
users.
"""
