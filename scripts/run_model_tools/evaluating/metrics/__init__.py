"""From predictions and truths to figures; nothing here reads a file."""
