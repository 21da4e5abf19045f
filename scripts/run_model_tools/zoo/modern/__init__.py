"""Networks as today's exporters write them, kept without their weights."""
