//! netdyno's own protocol between two endpoints.
