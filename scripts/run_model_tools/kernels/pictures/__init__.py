"""Layers on blocked pictures that are no convolutions."""
