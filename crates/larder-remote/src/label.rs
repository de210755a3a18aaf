//! What a server is called in metrics and messages: its address.
//!
//! The address of a node of a cluster is known once the cluster has told it. Where its number has become another node's, it is that one's.

use std::borrow::Cow;
use std::sync::Arc;

use crate::redis::Cluster;

/// See the head of the file.
#[derive(Debug)]
pub(crate) enum Label {
    Fixed(String),
    Node { cluster: Arc<Cluster>, number: usize },
}

impl Label {
    /// That of a node, by its number.
    pub(crate) fn of_node(cluster: &Arc<Cluster>, number: usize) -> Self {
        Self::Node { cluster: Arc::clone(cluster), number }
    }

    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Fixed(label) => Cow::Borrowed(label),
            Self::Node { cluster, number } => match cluster.address(*number) {
                Some(address) => Cow::Owned(address.to_string()),
                None => Cow::Borrowed("a node that is not known"),
            },
        }
    }
}
