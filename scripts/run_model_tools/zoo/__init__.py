"""The zoo: its list of networks, their sources and weights, and their reference results."""
