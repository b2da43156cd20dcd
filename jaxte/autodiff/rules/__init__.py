"""What kinds of definitions have rules of their own: reductions, extrema, scans, recurrences, tangents."""
