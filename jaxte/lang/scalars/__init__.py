"""Operations on scalars: one table, and what a row of it says."""
