//! How a tier hands over its figures.
//!
//! In: a figure. Out: its name, what it tells, labels beyond those of the tier, and its value.

/// Is told a name, what it is, labels, and a value.
pub type Visit<'a> = &'a mut dyn FnMut(&'static str, &'static str, &[(&str, &str)], u64);
