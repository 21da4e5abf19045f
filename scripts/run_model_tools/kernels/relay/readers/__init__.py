"""What becomes of each of Relay's operators in a plan: a module for each kind of them."""
