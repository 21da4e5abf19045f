"""What the commands of the example share."""
