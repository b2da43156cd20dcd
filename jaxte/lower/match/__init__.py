"""What recognisers share: products, index terms, relations between axes."""
