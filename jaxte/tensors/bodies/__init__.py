"""What the body of a definition is written with: functions of axes, indices that are affine piece by piece."""
