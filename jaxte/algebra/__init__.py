"""Normal forms of expressions: products, sums, like terms, polynomials, and what equations with data say; asked by plans, adjoints and forms alike."""
