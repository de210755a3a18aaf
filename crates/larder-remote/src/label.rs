//! What a server is called in metrics and messages: its address.
//!
//! The address of a node of a cluster is known once the cluster has told it, and never changes after that.

use std::sync::{Arc, OnceLock};

use crate::redis::Cluster;

/// See the head of the file.
#[derive(Debug)]
pub(crate) enum Label {
    Fixed(String),
    Node { cluster: Arc<Cluster>, number: usize, known: OnceLock<String> },
}

impl Label {
    /// That of a node, by its number.
    pub(crate) fn of_node(cluster: &Arc<Cluster>, number: usize) -> Self {
        Self::Node { cluster: Arc::clone(cluster), number, known: OnceLock::new() }
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Fixed(label) => label,
            Self::Node { cluster, number, known } => match (known.get(), cluster.address(*number)) {
                (Some(label), _) => label,
                (None, Some(address)) => known.get_or_init(|| address.to_string()),
                (None, None) => "a node that is not known",
            },
        }
    }
}
