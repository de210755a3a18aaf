//! Several Redis servers together, all of Debian's: a cluster, and a master with replicas that Sentinels watch over.

mod cluster;
mod sentinel;

pub(crate) use cluster::{Nodes, is_well};
pub(crate) use sentinel::Watched;
