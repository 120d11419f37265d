//! Synthesises captures that look like published ones, frame by frame, from a seed. No I/O.
