"""How pictures become tensors; where the committed pictures and labels come from."""
