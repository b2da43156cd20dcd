"""Work, rates of platforms, and the policy by which forms are chosen."""
