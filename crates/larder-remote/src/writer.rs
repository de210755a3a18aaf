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
        let (mut left, mut cost, mut sent) = (Vec::new(), 0, 0);
        for job in queue.take_deletions() {
            let job_cost = job.cost();
            let place = job.deleted_key().and_then(|key| self.placement.place(key));
            let moved = match place.filter(|place| *place != server) {
                Some(place) => self.send_on(anew(job), place),
                None => Err(job),
            };
            match moved {
                Ok(()) => (cost, sent) = (cost + job_cost, sent + 1),
                Err(job) => left.push(job),
            }
        }
        queue.put_back(left);
        queue.settle(cost, sent);
    }

    /// The server that is the right one at the moment, where there is a vote on that.
    fn elected(&self) -> Option<Address> {
        self.watched.as_ref().and_then(|dial| dial.elected())
    }

    /// Whether it was the right server that has confirmed deletions of these keys, each with the node of a cluster that has to be the
    /// right one: a former one deletes what nobody looks at.
    async fn vouches(&self, elected: Option<&Address>, keys: &[(&[u8], usize)]) -> bool {
        let vote = async {
            match (&self.placement, &self.watched, elected) {
                (KeyPlaces::Cluster(cluster), ..) => cluster.confirms_all(keys).await,
                (KeyPlaces::Ring(_), Some(dial), Some(elected)) => dial.confirms(elected).await,
                // Where there is a vote, none had been elected yet when they were sent.
                (KeyPlaces::Ring(_), Some(dial), None) => !dial.has_vote(),
                (KeyPlaces::Ring(_), None, _) => true,
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

/// Writes one batch. False where anything of it has no reply, or a deletion has another one than a confirmation. What comes behind
/// something without a reply confirms nothing.
async fn carry_out((server, number): (&Server, usize), queue: &Queue, link: &Link, routes: &Routes) -> bool {
    let elected = routes.elected();
    let (batch, mut cost) = unpacked(queue.take(BATCH, BATCH_BYTES));
    let begun: Vec<_> = batch.iter().map(|(job, _)| link.begin(request(job))).collect();
    let (mut deletions, mut again, mut confirmed) = (0, Vec::new(), Vec::new());
    let (mut is_well, mut is_cut) = (true, false);
    for ((job, job_cost), begun) in batch.into_iter().zip(begun) {
        let answer = reply_of(begun).await;
        is_well &= answer.is_ok();
        is_cut |= answer.is_err();
        let redirect = routes.placement.redirected(&answer);
        match (job, answer) {
            // Its key has gone to another node, and so does the deletion.
            (Job::Delete { key, confirm, hops, .. }, _)
                if let Some(Redirect { node, is_asking }) = redirect
                    && hops < HOPS_MAX =>
            {
                let asked_by = is_asking.then_some(number);
                let job = Job::Delete { key, confirm, asked_by, hops: hops + 1 };
                if let Err(job) = routes.send_on(job, node) {
                    is_well = false;
                    again.push(job);
                    continue;
                }
                deletions += 1;
            }
            // A value could get there behind a later deletion, so it does not go.
            (Job::Set { .. }, _) if redirect.is_some() => server.counters().wrote(Write::Refused),
            (Job::Made { .. }, _) => {}
            (Job::Touch { .. }, _) if redirect.is_some() => {}
            // Behind a reply that was lost it may have gone over a newer connection, and the value before it is read later.
            (job @ Job::Delete { .. }, Ok(Reply::Deleted | Reply::NotFound)) if !is_cut => {
                confirmed.push(job);
                continue;
            }
            (job @ Job::Delete { .. }, answer) => {
                told(server, answer);
                server.counters().wrote(Write::Unconfirmed);
                is_well = false;
                // After a pause.
                again.push(anew(job));
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
    let keys: Vec<(&[u8], usize)> = confirmed.iter().filter_map(|job| responsible(job, number)).collect();
    if !keys.is_empty() && !routes.vouches(elected.as_ref(), &keys).await {
        is_well = false;
        confirmed.iter().for_each(|_| server.counters().wrote(Write::Unconfirmed));
        again.extend(confirmed.drain(..).map(anew));
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

/// Entries as they are written, each with what it counts for, and what those count for that were made of others.
fn unpacked(batch: Vec<Job>) -> (Vec<(Job, usize)>, usize) {
    let (mut all, mut of_made) = (Vec::with_capacity(batch.len()), 0);
    for job in batch {
        let cost = job.cost();
        match job {
            Job::Made { make, .. } => {
                of_made += cost;
                all.extend(make.make().into_iter().map(|job| (job, 0)));
            }
            job => all.push((job, cost)),
        }
    }
    (all, of_made)
}

/// What a deletion deletes, and the node that has to be the right one for that: the one that was asked, or the one that has sent it there
/// by `ASK`.
fn responsible(job: &Job, asked: usize) -> Option<(&[u8], usize)> {
    match job {
        Job::Delete { key, asked_by, .. } => Some((key.as_bytes(), asked_by.unwrap_or(asked))),
        Job::Made { .. } | Job::Set { .. } | Job::Touch { .. } => None,
    }
}

/// A deletion as it was before any node had sent it on.
fn anew(job: Job) -> Job {
    match job {
        Job::Delete { key, confirm, .. } => Job::Delete { key, confirm, asked_by: None, hops: 0 },
        other => other,
    }
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
        Job::Delete { key, asked_by: None, .. } => Request::Delete(key.clone()),
        Job::Delete { key, .. } => Request::Asking(Box::new(Request::Delete(key.clone()))),
        Job::Touch { key } => Request::Touch(key.clone()),
        // Its values are in its place.
        Job::Made { .. } => Request::NoOp,
    }
}
