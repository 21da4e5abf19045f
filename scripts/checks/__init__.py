"""What scripts/lint checks that no linter knows of: this tree's own rules."""
