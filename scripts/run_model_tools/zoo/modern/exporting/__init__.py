"""Exports the networks of artifacts/modern; needs scripts/requirements-exporting.txt."""
