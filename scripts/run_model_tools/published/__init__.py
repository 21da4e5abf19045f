"""What a network's authors publish with it, read as preprocessing and tasks."""
