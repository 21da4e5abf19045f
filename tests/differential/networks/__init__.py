"""Small seeded networks for the differential tests, one module a theme.

Importing this package registers every network; `registry.all_networks()` lists them.
"""

from . import blocks, convolutions, element_types, graph_shapes, packaging, quantised, schedules

__all__ = [
    "blocks",
    "convolutions",
    "element_types",
    "graph_shapes",
    "packaging",
    "quantised",
    "schedules",
]
