"""The metric families: declared once, each with its formula, unit, empty rule and source."""
