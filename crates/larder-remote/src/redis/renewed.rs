//! Certificates that are read again for each connection to Redis, and what is said of it where they cannot be.
//!
//! In: their files. Out: TLS as the files are now. A file that is just being replaced may be of no use for a moment, or stay so: then what was read
//! before stays in use, and the server says whether it is good. One warning says so when it begins, with the file and the reason, and one
//! message when they could be read again.

use std::sync::atomic::{AtomicBool, Ordering};

use larder_observe::Diagnostics;
use larder_tls::Connector;

/// The kind of its messages.
const KIND: &str = "redis";

/// See the head of the file.
pub(super) struct RenewedTls {
    connector: Connector,
    diagnostics: Diagnostics,
    is_failing: AtomicBool,
}

impl RenewedTls {
    pub(super) fn new(connector: Connector, diagnostics: Diagnostics) -> Self {
        Self { connector, diagnostics, is_failing: AtomicBool::new(false) }
    }

    pub(super) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Reads the files again where one of them has changed. Calls the file system.
    pub(super) fn read_again(&self) {
        let read = self.connector.read_again();
        let was_failing = self.is_failing.swap(read.is_err(), Ordering::AcqRel);
        match read {
            Ok(()) if was_failing => self.diagnostics.info(
                KIND,
                "certificates are well",
                "the certificates for Redis could be read again, and are in use",
            ),
            Err(why) if !was_failing => {
                let mut said = why.to_string();
                let mut cause = std::error::Error::source(&why);
                while let Some(error) = cause {
                    said.push_str(&format!(": {error}"));
                    cause = error.source();
                }
                let what = "for Redis, what was read before stays in use";
                self.diagnostics.warn(KIND, &said, format_args!("{said}; {what}"));
            }
            Ok(()) | Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;
    use std::sync::Arc;
    use std::time::Duration;

    use larder_http::time::Clock;
    use larder_testkit::certificates::Certificates;
    use larder_tls::TlsSettings;
    use parking_lot::Mutex;

    use super::*;

    #[derive(Clone, Default)]
    struct Said(Arc<Mutex<Vec<u8>>>);

    impl Write for Said {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_file_that_stays_unreadable_is_told_once_and_once_when_it_is_well() {
        let (certificates, said) = (Certificates::new(), Said::default());
        let file = certificates.file("ca.pem");
        let good = std::fs::read(&file).unwrap();
        let settings = TlsSettings { ca_file: Some(file.clone()), ..TlsSettings::default() };
        let diagnostics = Diagnostics::to(Clock::default(), said.clone()).unwrap();
        let tls = RenewedTls::new(Connector::new(settings).unwrap(), diagnostics.clone());
        let lines = || {
            assert!(diagnostics.flush(Duration::from_secs(20)));
            String::from_utf8(said.0.lock().clone()).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
        };
        (0..3).for_each(|_| tls.read_again());
        assert_eq!(lines(), Vec::<String>::new());
        std::fs::write(&file, "no certificate").unwrap();
        (0..3).for_each(|_| tls.read_again());
        std::fs::remove_file(&file).unwrap();
        (0..3).for_each(|_| tls.read_again());
        let warned = lines();
        assert!(warned.len() == 1 && warned[0].contains("warning: ca file"), "{warned:?}");
        assert!(warned[0].contains(file.to_str().unwrap()), "{warned:?}");
        assert!(warned[0].ends_with("for Redis, what was read before stays in use"), "{warned:?}");
        std::fs::write(&file, good).unwrap();
        (0..3).for_each(|_| tls.read_again());
        let told = lines();
        assert!(told.len() == 2 && told[1].contains("could be read again"), "{told:?}");
    }
}
