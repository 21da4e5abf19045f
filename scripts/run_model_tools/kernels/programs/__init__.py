"""Programs: what is done to numbers one by one, and to rows of them."""
