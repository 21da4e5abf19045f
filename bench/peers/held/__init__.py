"""Peers held to AVX2 on a CPU that has AVX-512."""
