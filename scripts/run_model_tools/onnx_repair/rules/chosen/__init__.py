"""Rows of which only the run time knows how many there are, as rules for what is done with them."""
