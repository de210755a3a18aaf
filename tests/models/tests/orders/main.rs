//! The models as tests: one program for all of them.

mod fleet;
mod invalidation;
mod versions;
