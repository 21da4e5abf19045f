"""What a network's outputs mean: "tasks" of metadata.json, as postprocess/README.md says it."""
