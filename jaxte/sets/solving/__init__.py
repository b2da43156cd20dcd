"""Sets over fewer axes: equations solved, axes eliminated, boxes as small as they can be."""
