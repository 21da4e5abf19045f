"""From Relay to a plan of layers, and back to Relay with operators of ours."""
