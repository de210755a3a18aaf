//! Purges, from the admin address's questions to the proxy's orders.
//!
//! In: a question in the words in which it was asked. Out: a receipt, or why there is none. Nothing is decided here: whoever asks here
//! may purge every site.

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use larder_admin::{Fault, NotPurged, PurgeQuestion, PurgeReceipt, Unanswered};
use larder_proxy::objects::Purged;
use larder_proxy::purges::{AuditEntry, Dialect, Order, PurgeError, Sender, WrongOrder};
use larder_proxy::{Scope, Worker};

/// What lets in who asks by the admin address.
const ADMIN: &str = "admin";

pub(super) async fn purge(worker: Arc<Worker>, asked: PurgeQuestion) -> Result<PurgeReceipt, NotPurged> {
    let PurgeQuestion { selectors, mode, site, dialect, wait } = asked;
    let scope = match site {
        None => Arc::new(Scope::any()),
        Some(host) => worker.scope_of(&host).ok_or(NotPurged::NoSite(host))?,
    };
    let dialect = Dialect::ALL.iter().copied().find(|known| known.token() == dialect);
    let sender = Sender { dialect: dialect.unwrap_or(Dialect::Api), peer: None, by: ADMIN };
    let order = Order { selectors, mode, scope, here: Vec::new(), takes_patterns: true, wait };
    match worker.purge(&order, sender).await {
        Ok(receipt) => Ok(told(&receipt)),
        Err(PurgeError::Wrong(WrongOrder(wrong))) => {
            Err(NotPurged::Wrong(wrong.into_iter().map(|(number, why)| (number, chain(&why))).collect()))
        }
        Err(PurgeError::Busy) => Err(NotPurged::Busy),
        Err(PurgeError::NotHeld { receipt, why }) => Err(NotPurged::NotHeld { receipt: told(&receipt), why }),
        Err(PurgeError::Incomplete { receipt, why }) => {
            Err(NotPurged::Incomplete { receipt: told(&receipt), why })
        }
        Err(error @ PurgeError::Lost) => Err(NotPurged::Broken(error.to_string())),
    }
}

/// Takes out what is stored under a URL.
pub(super) async fn remove(worker: Arc<Worker>, url: String) -> Result<PurgeReceipt, Unanswered> {
    let selectors = vec![larder_cache::purge::Selector::Url(url.as_str().into())];
    let mode = larder_cache::purge::Mode::Hard;
    let asked = PurgeQuestion { selectors, mode, site: None, dialect: "api", wait: None };
    let unanswered = |fault, token, message| Unanswered { fault, token, message, receipt: None };
    match purge(worker, asked).await {
        Ok(receipt) => Ok(PurgeReceipt { json: json(&Purged { url, removed: receipt.removed }), ..receipt }),
        Err(NotPurged::Wrong(wrong)) => {
            let why = wrong.into_iter().map(|(_, why)| why).next().unwrap_or_default();
            Err(unanswered(Fault::Asker, "url", why))
        }
        Err(NotPurged::NotHeld { receipt, why }) => {
            let gone = match receipt.removed {
                1 => "1 response is".to_owned(),
                count => format!("{count} responses are"),
            };
            let message = format!(
                "{gone} gone, but a disk did not confirm that and may bring it back: ask again: {why}"
            );
            let receipt = Some(Box::new(receipt));
            Err(Unanswered { receipt, ..unanswered(Fault::Store, "not-durable", message) })
        }
        Err(NotPurged::Incomplete { receipt, why }) => {
            let receipt = Some(Box::new(receipt));
            let message = format!("gone here, but not everywhere: {why}");
            Err(Unanswered { receipt, ..unanswered(Fault::Store, "incomplete", message) })
        }
        Err(NotPurged::Busy | NotPurged::NoSite(_)) => {
            Err(unanswered(Fault::Store, "busy", "too many purges are under way".to_owned()))
        }
        Err(NotPurged::Broken(why)) => Err(unanswered(Fault::Store, "broken", why)),
    }
}

fn told(receipt: &AuditEntry) -> PurgeReceipt {
    PurgeReceipt { id: receipt.id.clone(), removed: receipt.removed, json: json(receipt) }
}

/// A value of ours is always JSON.
pub(super) fn json(value: &impl serde::Serialize) -> Bytes {
    serde_json::to_vec_pretty(value).unwrap_or_default().into()
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
