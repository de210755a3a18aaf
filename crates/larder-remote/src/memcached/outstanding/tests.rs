//! The order of replies, whatever callers do.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use tokio::sync::Semaphore;
use tokio::sync::oneshot::Receiver;

use super::*;
use crate::deadline::Limits;
use crate::reply::{Ttl, Value};

const TIMEOUT: Duration = Duration::from_millis(200);

fn ask(room: &Arc<Semaphore>, request: Request, at: Instant) -> (Ask, Receiver<Answer>) {
    let (reply, answer) = oneshot::channel();
    let seat = Arc::clone(room).try_acquire_owned().unwrap();
    (Ask { request, deadline: Limits::waited_for(TIMEOUT).from(at), reply, seat }, answer)
}

fn key(n: usize) -> RemoteKey {
    RemoteKey::of_memcached(format!("/{n}"))
}

fn value(n: usize) -> Reply {
    let (key, body) = (Bytes::copy_from_slice(key(n).as_bytes()), Bytes::from(n.to_string()));
    Reply::Value(Value { key, flags: 0, ttl: Ttl::Unknown, is_stale: false, is_awaited: false, body })
}

fn answered(mut answer: Receiver<Answer>) -> Option<Answer> {
    answer.try_recv().ok()
}

#[test]
fn a_caller_that_leaves_takes_no_reply_from_another() {
    let (room, now, mut outstanding) = (Arc::new(Semaphore::new(3)), Instant::now(), Outstanding::default());
    let mut answers: Vec<_> = (0..3)
        .map(|n| {
            let (ask, answer) = ask(&room, Request::Get(key(n)), now);
            outstanding.push(ask);
            Some(answer)
        })
        .collect();
    answers[1] = None;
    for n in 0..3 {
        assert_eq!(outstanding.answer(value(n)), Ok(Arrival::InTime));
    }
    assert_eq!(answers[0].take().and_then(answered), Some(Ok(value(0))));
    assert_eq!(answers[2].take().and_then(answered), Some(Ok(value(2))));
    assert!(outstanding.is_empty());
    assert_eq!(room.available_permits(), 3, "all places are free again");
}

#[test]
fn a_late_reply_is_read_and_dropped_and_the_next_one_is_the_next_callers() {
    let (room, now, mut outstanding) = (Arc::new(Semaphore::new(2)), Instant::now(), Outstanding::default());
    let (first, late) = ask(&room, Request::Get(key(0)), now);
    let (second, in_time) = ask(&room, Request::Get(key(1)), now + TIMEOUT);
    outstanding.push(first);
    outstanding.push(second);
    assert_eq!(outstanding.wake_at(), Some(now + TIMEOUT));
    assert_eq!(outstanding.expire(now + TIMEOUT), Expiry { told: 1, is_over: false });
    assert_eq!(outstanding.wake_at(), Some(now + 2 * TIMEOUT));
    assert_eq!(room.available_permits(), 0, "its place is taken until its reply has come");
    assert_eq!(outstanding.answer(value(0)), Ok(Arrival::Late));
    assert_eq!(outstanding.answer(value(1)), Ok(Arrival::InTime));
    assert_eq!(answered(late), Some(Err(Failure::TimedOut)));
    assert_eq!(answered(in_time), Some(Ok(value(1))));
    assert_eq!(outstanding.wake_at(), None);
}

#[test]
fn a_reply_that_is_five_times_as_late_ends_the_connection() {
    let (room, now, mut outstanding) = (Arc::new(Semaphore::new(2)), Instant::now(), Outstanding::default());
    let (first, answer) = ask(&room, Request::Get(key(0)), now);
    outstanding.push(first);
    outstanding.expire(now + TIMEOUT);
    assert_eq!(outstanding.wake_at(), Some(now + 5 * TIMEOUT));
    assert_eq!(outstanding.expire(now + 5 * TIMEOUT), Expiry { told: 0, is_over: true });
    outstanding.fail(Failure::Closed);
    assert_eq!(answered(answer), Some(Err(Failure::TimedOut)), "it was told once");
    assert_eq!(room.available_permits(), 2);
}

fn check(request: Request, reply: Reply, is_own: bool) {
    let (room, mut outstanding) = (Arc::new(Semaphore::new(1)), Outstanding::default());
    let (ask, answer) = ask(&room, request, Instant::now());
    outstanding.push(ask);
    let text = format!("{reply:?}");
    assert_eq!(outstanding.answer(reply).is_ok(), is_own, "{text}");
    assert_eq!(answered(answer).is_some(), is_own, "{text}");
}

#[test]
fn only_a_reply_to_what_was_asked_is_taken() {
    let get = || Request::Get(key(1));
    let set = || Request::Set { key: key(1), expires: 0, value: Bytes::new() };
    let delete = || Request::Delete(key(1));
    let named = |n| Reply::Absent(Some(Bytes::copy_from_slice(key(n).as_bytes())));
    check(get(), value(1), true);
    check(get(), value(2), false);
    check(get(), Reply::Absent(None), true);
    check(get(), named(1), true);
    check(get(), named(2), false);
    check(get(), Reply::ServerError(String::new()), true);
    for foreign in [Reply::Stored, Reply::Deleted, Reply::NotFound, Reply::NoOp, Reply::Unknown] {
        check(get(), foreign, false);
    }
    check(get(), Reply::ClientError(String::new()), false);
    check(set(), Reply::Stored, true);
    check(set(), Reply::NotStored, true);
    check(set(), Reply::Deleted, false);
    check(set(), Reply::Absent(None), false);
    check(delete(), Reply::Deleted, true);
    check(delete(), Reply::NotFound, true);
    check(delete(), Reply::Stored, false);
    check(Request::NoOp, Reply::NoOp, true);
    check(Request::NoOp, Reply::Unknown, true);
    check(Request::NoOp, Reply::Stored, false);
    assert_eq!(Outstanding::default().answer(Reply::NoOp), Err(Foreign), "nothing was asked");
}

#[derive(Clone, Debug)]
enum Step {
    Ask,
    Reply,
    Leave(usize),
    Wait(u64),
}

proptest! {
    /// Random requests, replies, callers that leave, and time: each caller that stays has the value of its own key, or none.
    #[test]
    fn every_body_is_the_one_of_its_key(steps in proptest::collection::vec(prop_oneof![
        4 => Just(Step::Ask),
        4 => Just(Step::Reply),
        2 => (0..100_usize).prop_map(Step::Leave),
        1 => (1..150_u64).prop_map(Step::Wait),
    ], 1..200)) {
        let (room, mut now, mut outstanding) = (Arc::new(Semaphore::new(200)), Instant::now(), Outstanding::default());
        let (mut answers, mut asked, mut replied) = (Vec::new(), 0, 0);
        for step in steps {
            match step {
                Step::Ask => {
                    let (ask, answer) = ask(&room, Request::Get(key(asked)), now);
                    outstanding.push(ask);
                    answers.push((asked, answer));
                    asked += 1;
                }
                Step::Reply if replied < asked => {
                    prop_assert!(outstanding.answer(value(replied)).is_ok());
                    replied += 1;
                }
                Step::Leave(n) if !answers.is_empty() => drop(answers.swap_remove(n % answers.len())),
                Step::Wait(ms) => {
                    now += Duration::from_millis(ms);
                    if outstanding.expire(now).is_over {
                        outstanding.fail(Failure::Closed);
                        replied = asked;
                    }
                }
                Step::Reply | Step::Leave(_) => {}
            }
            prop_assert_eq!(room.available_permits(), 200 - (asked - replied));
        }
        for (n, answer) in answers {
            if let Some(Ok(reply)) = answered(answer) {
                prop_assert_eq!(reply, value(n));
            }
        }
    }
}
