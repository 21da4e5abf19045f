"""run_model against other runtimes: each in a process of its own, by turns."""
