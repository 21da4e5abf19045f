"""Measures how to compile a network best, and keeps what was best."""
