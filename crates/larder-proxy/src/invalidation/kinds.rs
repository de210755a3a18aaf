//! All kinds of predicates that are found by a hash.

use super::kind::NameKind;
use super::{groups, hosts, paths, tags};

/// Each kind is a file. A further kind has an entry here.
pub(super) const KINDS: [NameKind; 4] = [tags::KIND, groups::KIND, paths::KIND, hosts::KIND];
