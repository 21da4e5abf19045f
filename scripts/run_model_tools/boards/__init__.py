"""What is brought to a board, and how it is driven from here."""
