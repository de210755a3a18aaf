//! Writes to one server what its queue has, for the whole process.
//!
//! In: the queue. Out: requests on a connection of its own, many at once, in the order of the queue; confirmations of deletions.
//! While the server fails, values are dropped and deletions wait. A deletion without a confirmation is sent again before all
//! that came after it.
//!
//! A value whose reply is lost may still be stored: the server may have its bytes, and read them later from a connection that is
//! closed already. Then the value would lie there after a deletion that came behind it. So after a failure the server
//! has to reply to a request for nothing first. Then it has a second for what older connections have brought, and only then is a deletion
//! sent again.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::ask::Answer;
use crate::error::Failure;
use crate::link::{Link, reply_of};
use crate::metrics::Write;
use crate::queue::{Confirm, Job, Queue};
use crate::reply::Reply;
use crate::request::Request;
use crate::server::Server;
use crate::settings::KeyPlaces;

/// Entries that are on their way at once.
const BATCH: usize = 64;
/// And their bytes.
const BATCH_BYTES: usize = 1 << 20;
/// What a server is given for what older connections have brought.
const SETTLE: Duration = Duration::from_secs(1);

/// Where entries go that a server does not have the keys of any more.
pub(crate) struct Routes {
    pub(crate) placement: KeyPlaces,
    /// Those of all servers.
    pub(crate) queues: Vec<Arc<Queue>>,
}

/// Ends when the queue is closed, and empty or not to be written.
pub(crate) async fn write(server: Arc<Server>, queue: Arc<Queue>, link: Link, routes: Arc<Routes>) {
    while queue.wait().await {
        if server.may_ask() && carry_out(&server, &queue, &link, &routes).await {
            continue;
        }
        // A server that fails is not waited for when nobody can ask for anything any more.
        if queue.is_closed() {
            return;
        }
        recover(&server, &queue, &link).await;
    }
}

/// Waits until the server replies again, and has carried out what it had.
async fn recover(server: &Server, queue: &Queue, link: &Link) {
    loop {
        while !server.may_ask() && !queue.is_closed() {
            drop_values(server, queue);
            // Closing the queue does not wake this, so it looks again.
            let _ = tokio::time::timeout(SETTLE, server.breaker().until(false)).await;
        }
        let is_well = link.ask(Request::NoOp).await.is_ok();
        sleep(SETTLE).await;
        if is_well || queue.is_closed() {
            return;
        }
    }
}

fn drop_values(server: &Server, queue: &Queue) {
    for _ in 0..queue.drop_values() {
        server.counters().wrote(Write::Failing);
    }
}

/// Writes one batch. False where anything of it has no reply, or a deletion has another one than a confirmation.
async fn carry_out(server: &Server, queue: &Queue, link: &Link, routes: &Routes) -> bool {
    let batch = queue.take(BATCH, BATCH_BYTES);
    let begun: Vec<_> = batch.iter().map(|job| link.begin(request(job))).collect();
    let (mut cost, mut deletions, mut again, mut confirmed) = (0, 0, Vec::new(), Vec::new());
    let mut is_well = true;
    for (job, begun) in batch.into_iter().zip(begun) {
        let answer = reply_of(begun).await;
        is_well &= answer.is_ok();
        let job_cost = job.cost();
        let redirect = routes.placement.redirected(&answer);
        match (job, answer) {
            // Its key has gone to another node, and so does the deletion.
            (Job::Delete { key, confirm, .. }, _) if let Some(redirect) = redirect => {
                if let Some(other) = routes.queues.get(redirect.node) {
                    other.redirect(key, confirm, redirect.is_asking);
                }
                deletions += 1;
            }
            // A value could get there behind a later deletion, so it does not go.
            (Job::Set { .. }, _) if redirect.is_some() => server.counters().wrote(Write::Refused),
            (Job::Touch { .. }, _) if redirect.is_some() => {}
            (Job::Delete { confirm, .. }, Ok(Reply::Deleted | Reply::NotFound)) => {
                deletions += 1;
                server.counters().wrote(Write::Deleted);
                confirmed.push(confirm);
            }
            (job @ Job::Delete { .. }, answer) => {
                told(server, answer);
                server.counters().wrote(Write::Unconfirmed);
                is_well = false;
                again.push(job);
                continue;
            }
            // Where it is not told, the server knows no better than before.
            (Job::Touch { .. }, Ok(Reply::ServerError(text))) => server.refused(&text),
            (Job::Touch { .. }, _) => {}
            (Job::Set { .. }, Ok(Reply::Stored)) => server.counters().wrote(Write::Written),
            (Job::Set { .. }, answer @ Ok(_)) => {
                told(server, answer);
                server.counters().wrote(Write::Refused);
            }
            (Job::Set { .. }, Err(Failure::Skipped)) => server.counters().wrote(Write::Failing),
            (Job::Set { .. }, Err(_)) => server.counters().wrote(Write::Lost),
        }
        cost += job_cost;
    }
    queue.settle(cost, deletions);
    queue.put_back(again);
    // Behind the queue's own account, so that who is told finds it empty.
    confirmed.into_iter().for_each(Confirm::confirm);
    is_well
}

fn told(server: &Server, answer: Answer) {
    if let Ok(Reply::ServerError(text)) = answer {
        server.refused(&text);
    }
}

fn request(job: &Job) -> Request {
    match job {
        Job::Set { key, expires, value } => {
            Request::Set { key: key.clone(), expires: *expires, value: value.clone() }
        }
        Job::Delete { key, is_asking: false, .. } => Request::Delete(key.clone()),
        Job::Delete { key, .. } => Request::Asking(Box::new(Request::Delete(key.clone()))),
        Job::Touch { key } => Request::Touch(key.clone()),
    }
}
