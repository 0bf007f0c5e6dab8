"""Alerts that know how much they know: from exact sums of groups of users to what is said.

Pure; docs/alerts_statistics.md explains it and has measured it.
"""
