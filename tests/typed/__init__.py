"""Programs of users, which mypy checks as they stand and pytest runs."""
