"""The scalar and index language: nodes, operators, the table of scalar functions."""
