//! What is stored, from the admin address's questions to the proxy's answers.
//!
//! In: a question in the words in which it was asked. Out: JSON, a body, or why there is neither. Nothing is decided here.

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use larder_admin::{Fault, ListQuestion, ObjectQuestion, PageUse, Shown, Unanswered};
use larder_proxy::Worker;
use larder_proxy::objects::{Listing, ObjectsError, Stores};
use serde::Serialize;

pub(super) async fn list(
    worker: Arc<Worker>,
    mut stores: Stores,
    asked: ListQuestion,
) -> Result<Bytes, Unanswered> {
    let ListQuestion { prefix, store, cursor, limit, remote, names } = asked;
    if let Some(only) = store {
        stores.retain(|(name, _)| *name == only);
        if stores.is_empty() {
            return Err(told(&ObjectsError::Store(only)));
        }
    }
    let page = worker.objects(stores, Listing { prefix, cursor, limit, remote, names }).await;
    json(&page.map_err(|why| told(&why))?)
}

pub(super) async fn object(
    worker: Arc<Worker>,
    stores: Stores,
    asked: ObjectQuestion,
) -> Result<Shown, Unanswered> {
    if let Some(wanted) = asked.assembled {
        let page = worker.page(&asked.url).await.map_err(|why| told(&why))?;
        return match asked.body {
            None => json(page.told()).map(Shown::Json),
            Some(_) => {
                let body = page.into_body(wanted == PageUse::Exported);
                body.map(Shown::Body).map_err(|why| told(&why))
            }
        };
    }
    match asked.body {
        None => {
            let object = worker.object(stores, &asked.url).await.map_err(|why| told(&why))?;
            json(&object).map(Shown::Json)
        }
        Some(number) => {
            let body = worker.body(stores, &asked.url, number).await;
            body.map(Shown::Body).map_err(|why| told(&why))
        }
    }
}

fn json(value: &impl Serialize) -> Result<Bytes, Unanswered> {
    let broken = |error: serde_json::Error| Unanswered {
        fault: Fault::Store,
        token: "broken",
        message: error.to_string(),
        receipt: None,
    };
    serde_json::to_vec_pretty(value).map(Bytes::from).map_err(broken)
}

fn told(why: &ObjectsError) -> Unanswered {
    let fault = match why {
        ObjectsError::Url(_) | ObjectsError::Cursor(_) => Fault::Asker,
        ObjectsError::Store(_)
        | ObjectsError::NotStored(_)
        | ObjectsError::NotForAll(_)
        | ObjectsError::NoSuchResponse { .. }
        | ObjectsError::NoPage { .. } => Fault::Absent,
        ObjectsError::Busy => Fault::Busy,
        ObjectsError::Unreadable(_) | ObjectsError::Remote { .. } | ObjectsError::Lost => Fault::Store,
    };
    let mut message = why.to_string();
    let mut cause = why.source();
    while let Some(error) = cause {
        message.push_str(&format!(": {error}"));
        cause = error.source();
    }
    Unanswered { fault, token: why.token(), message, receipt: None }
}
