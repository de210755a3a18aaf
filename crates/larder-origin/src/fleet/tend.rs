//! What has to be done for a fleet while it lives, beside requests: names and health checks.
//!
//! In: a fleet. Out: nothing; its endpoints come and go and are found healthy or not. One of these futures per process
//! and fleet is enough; dropping it ends everything.

use super::Fleet;
use crate::health;

impl Fleet {
    /// Looks names up again and asks servers how they are, for ever.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub(crate) async fn tend(&self) {
        let checks = health::keep_checking(self.watch(), self.settings.clone(), self.resources.clone());
        tokio::join!(self.keep_names(), checks);
    }
}
