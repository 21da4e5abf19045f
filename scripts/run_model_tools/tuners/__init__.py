"""How tuning searches: spaces of choices, the searches themselves, and recordings to compare them
on."""
