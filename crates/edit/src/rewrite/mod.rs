//! Editing frames in place, one pass over a capture.
