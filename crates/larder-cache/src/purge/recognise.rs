//! Patterns that mean something exact.
