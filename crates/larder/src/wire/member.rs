//! What this larder is called in its fleet: as the config says, else by the name of its host.

use std::sync::Arc;

/// What this larder is called in its fleet.
pub(super) fn member_name(said: &larder_config::Fleet) -> Arc<str> {
    said.name.as_ref().map_or_else(host_name, |name| name.as_str().into())
}

/// The name of the host.
pub(crate) fn host_name() -> Arc<str> {
    rustix::system::uname().nodename().to_string_lossy().into()
}
