"""Operators on images: windows, convolutions, pools, other sizes, boxes."""
