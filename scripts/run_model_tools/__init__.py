"""What the commands in scripts/ share.  Every module may be imported on its own."""
