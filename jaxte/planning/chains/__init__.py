"""Steps of a user's own loop as one recurrence."""
