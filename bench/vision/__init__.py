"""What the benches of boxes, masks and landmarks share."""
