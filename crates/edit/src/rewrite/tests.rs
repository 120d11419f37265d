//! Whole frames through plans.
