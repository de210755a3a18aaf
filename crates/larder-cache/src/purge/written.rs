//! Predicates as bytes, for journals.
