"""Single files and packages out of registries: Debian's, PyPI's, any address."""
