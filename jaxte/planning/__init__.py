"""Sums of products in the order in which they cost least: definitions made of definitions, before they are differentiated or lowered."""
