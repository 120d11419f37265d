//! Runs a program: pacing, workers, and the engines frames leave through.
