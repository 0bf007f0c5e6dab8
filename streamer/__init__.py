"""streamer: live, exact metrics for recommender, ranking and ads teams."""

__version__ = "0.1.0"
