"""What examples/tuners/driver.py does with its configuration, a module for each method."""
