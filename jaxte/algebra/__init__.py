"""Normal forms of expressions: products, sums, like terms and what data say, asked by plans, adjoints and forms alike."""
