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

use tokio::time::{sleep, timeout};

use crate::address::Address;
use crate::ask::Answer;
use crate::error::Failure;
use crate::key::RemoteKey;
use crate::link::{Link, reply_of};
use crate::metrics::Write;
use crate::queue::{Job, Queue};
use crate::redis::{Dial, Redirect};
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
/// How often nodes of a cluster send a deletion on before they are left alone for a while: two that disagree would do so without an end.
const HOPS_MAX: u8 = 4;
/// How long a vote on the right server may take.
const VOTE_MAX: Duration = Duration::from_secs(2);

/// Where entries go that a server does not have the keys of any more.
pub(crate) struct Routes {
    pub(crate) placement: KeyPlaces,
    /// Those of all servers.
    pub(crate) queues: Vec<Arc<Queue>>,
    /// Who says which servers are the right ones, where that may change.
    pub(crate) watched: Option<Arc<Dial>>,
}

impl Routes {
    /// Hands a deletion to another server. Gives it back where that one has no room.
    fn send_on(&self, job: Job, server: usize) -> Result<(), Job> {
        match self.queues.get(server) {
            Some(queue) => queue.redirect(job),
            None => Err(job),
        }
    }

    /// What waits for a node of a cluster that has lost its keys goes to those that have them now.
    fn send_on_from(&self, queue: &Queue, server: usize) {
        if !matches!(self.placement, KeyPlaces::Cluster(_)) {
            return;
        }
        let elsewhere =
            |key: &RemoteKey| self.placement.place(key.as_bytes()).filter(|place| *place != server);
        let mut left = Vec::new();
        for job in queue.take_deletions(|key| elsewhere(key).is_some()) {
            let place = match &job {
                Job::Delete { key, .. } => elsewhere(key),
                _ => None,
            };
            let sent = match place {
                Some(place) => self.send_on(job, place),
                None => Err(job),
            };
            left.extend(sent.err().and_then(|job| queue.redirect(job).err()));
        }
    }

    /// The server that is the right one at the moment, where there is a vote on that.
    fn elected(&self) -> Option<Address> {
        self.watched.as_ref().and_then(|dial| dial.elected())
    }

    /// Whether it was the right server that has confirmed deletions of these keys: a former one deletes what nobody looks at.
    async fn vouches(&self, server: usize, elected: Option<&Address>, keys: &[&[u8]]) -> bool {
        let vote = async {
            match (&self.placement, &self.watched, elected) {
                (KeyPlaces::Cluster(cluster), ..) => cluster.confirms_all(server, keys).await,
                (KeyPlaces::Ring(_), Some(dial), Some(elected)) => dial.confirms(elected).await,
                (KeyPlaces::Ring(_), ..) => true,
            }
        };
        timeout(VOTE_MAX, vote).await.unwrap_or(false)
    }
}

/// Ends when the queue is closed, and empty or not to be written.
pub(crate) async fn write(
    (server, number): (Arc<Server>, usize),
    queue: Arc<Queue>,
    link: Link,
    routes: Arc<Routes>,
) {
    while queue.wait().await {
        if server.may_ask() && carry_out((&server, number), &queue, &link, &routes).await {
            continue;
        }
        queue.hold_up(true);
        // A server that fails is not waited for when nobody can ask for anything any more.
        if queue.is_closed() {
            return;
        }
        recover((&server, number), &queue, &link, &routes).await;
        // Where nothing is left, nothing waits.
        queue.hold_up(queue.bytes() > 0);
    }
}

/// Waits until the server replies again, and has carried out what it had.
async fn recover((server, number): (&Server, usize), queue: &Queue, link: &Link, routes: &Routes) {
    loop {
        while !server.may_ask() && !queue.is_closed() {
            drop_values(server, queue);
            routes.send_on_from(queue, number);
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
async fn carry_out((server, number): (&Server, usize), queue: &Queue, link: &Link, routes: &Routes) -> bool {
    let elected = routes.elected();
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
            (Job::Delete { key, confirm, hops, .. }, _)
                if let Some(Redirect { node, is_asking }) = redirect
                    && hops < HOPS_MAX =>
            {
                let job = Job::Delete { key, confirm, is_asking, hops: hops + 1 };
                if let Err(job) = routes.send_on(job, node) {
                    is_well = false;
                    again.push(job);
                    continue;
                }
                deletions += 1;
            }
            // A value could get there behind a later deletion, so it does not go.
            (Job::Set { .. }, _) if redirect.is_some() => server.counters().wrote(Write::Refused),
            (Job::Touch { .. }, _) if redirect.is_some() => {}
            (job @ Job::Delete { .. }, Ok(Reply::Deleted | Reply::NotFound)) => {
                confirmed.push(job);
                continue;
            }
            (Job::Delete { key, confirm, .. }, answer) => {
                told(server, answer);
                server.counters().wrote(Write::Unconfirmed);
                is_well = false;
                // After a pause it begins anew.
                again.push(Job::Delete { key, confirm, is_asking: false, hops: 0 });
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
    let keys: Vec<&[u8]> = confirmed.iter().filter_map(Job::deleted_key).collect();
    if !keys.is_empty() && !routes.vouches(number, elected.as_ref(), &keys).await {
        is_well = false;
        confirmed.iter().for_each(|_| server.counters().wrote(Write::Unconfirmed));
        again.append(&mut confirmed);
    }
    deletions += confirmed.len();
    cost += confirmed.iter().map(Job::cost).sum::<usize>();
    queue.settle(cost, deletions);
    queue.put_back(again);
    queue.hold_up(!is_well);
    // Behind the queue's own account, so that who is told finds it empty.
    for job in confirmed {
        server.counters().wrote(Write::Deleted);
        if let Job::Delete { confirm, .. } = job {
            confirm.confirm();
        }
    }
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
