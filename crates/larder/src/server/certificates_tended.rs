//! What a running larder does about its certificates as time goes by.
//!
//! In: a call each second. Out: renewed files are in use, and those who look on know of them.

use super::Server;
use super::certificates::ShownCertificates;

impl Server {
    /// Tells those who look on what clients are shown.
    pub(super) fn show_certificates(&self) {
        self.insight.show(ShownCertificates {
            certificates: self.tls.certificates().to_vec(),
            tickets: self.tls.tickets(),
            warning: self.config.tls.expiry_warning,
        });
    }

    /// Looks after the certificates. To be called each second or so; files are looked at each minute.
    pub fn tend_certificates(&mut self) {
        let now = self.clock.now().wall;
        if self.tls.look(&self.config, now, &self.diagnostics) {
            self.listen_anew();
            self.show_certificates();
            let text = "renewed certificates are in use";
            self.diagnostics.tell(larder_observe::Level::Info, text);
            self.insight.tell("certificates", "", text.to_owned());
        }
        self.tls.warn(self.config.tls.expiry_warning, now, &self.diagnostics);
    }
}
