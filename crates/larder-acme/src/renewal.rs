//! The question when the authority wants a certificate renewed (RFC 9773 4).
//!
//! In: a certificate, as the authority knows it. Out: a window and when to ask again, or that the authority has no such answers.

use std::sync::Arc;
use std::time::Duration;

use instant_acme::{CertificateIdentifier, Error as ProtocolError};
use larder_http::time::WallTime;
use tokio::time::timeout;

use crate::account::Accounts;
use crate::client::CaClient;
use crate::error::{Failure, FailureKind};
use crate::schedule::RenewalWindow;
use crate::settings::AcmeSettings;

/// Longest question: the directory, the account where there is none, and the window.
const QUESTION_TIME: Duration = Duration::from_secs(120);
/// An authority without such answers is asked again in so long.
const WITHOUT: Duration = Duration::from_secs(24 * 3600);

/// What the authority says.
pub(crate) struct Suggested {
    pub(crate) window: Option<RenewalWindow>,
    pub(crate) retry_after: Option<Duration>,
}

/// Asks for the window of one certificate.
pub(crate) async fn ask(
    accounts: Arc<Accounts>,
    settings: Arc<AcmeSettings>,
    client: CaClient,
    certificate: CertificateIdentifier<'static>,
) -> Result<Suggested, Failure> {
    let asked = async {
        let account = accounts.open(&settings, &client).await?;
        match account.renewal_info(&certificate).await {
            Ok((info, again)) => {
                let moment = |seconds: i64| WallTime::from_secs(u64::try_from(seconds).unwrap_or(0));
                let window = &info.suggested_window;
                let window = RenewalWindow {
                    start: moment(window.start.unix_timestamp()),
                    end: moment(window.end.unix_timestamp()),
                };
                Ok(Suggested { window: Some(window), retry_after: Some(again) })
            }
            Err(ProtocolError::Unsupported(_)) => Ok(Suggested { window: None, retry_after: Some(WITHOUT) }),
            Err(error) => Err(Failure::of("window for the renewal", &error, client.last())),
        }
    };
    match timeout(QUESTION_TIME, asked).await {
        Ok(result) => result,
        Err(_) => Err(Failure::new(FailureKind::Unreachable, "no window for the renewal in time")),
    }
}
