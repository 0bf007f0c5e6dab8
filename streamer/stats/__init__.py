"""Statistics of sums, pure: intervals, experiments, alerts."""
