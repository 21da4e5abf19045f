"""Golden cases of postprocess/, by kind."""
