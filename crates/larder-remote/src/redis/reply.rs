//! What is asked of Redis, and what its replies mean.
//!
//! In: a request. Out: the commands for it, sent as one; and of their replies what became of it. A value and the time that it has left
//! are two commands in one round trip. Another program may come between them: a value that has gone since is absent, and one
//! that was written anew has the time of the new one.
//! Redis does not repeat a key in its reply. So the order of replies has to be right, and their types tell where it is not: a
//! string and a number in turns.

use std::time::Duration;

use ::redis::{Pipeline, ServerError, Value as Resp};
use bytes::Bytes;

use crate::reply::{Reply, Ttl, Value};
use crate::request::Request;

/// Replies that such a request cannot have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unrelated;

/// The commands for `request`.
pub(super) fn commands(request: &Request) -> Pipeline {
    let mut pipeline = Pipeline::new();
    match request {
        Request::Get(key) => {
            pipeline.cmd("GET").arg(key.as_bytes()).cmd("PTTL").arg(key.as_bytes());
        }
        Request::Set { key, expires, value } => {
            pipeline.cmd("SET").arg(key.as_bytes()).arg(&value[..]).arg("PX").arg(*expires);
        }
        Request::Claim { key, expires, value } => {
            let command = pipeline.cmd("SET").arg(key.as_bytes()).arg(&value[..]);
            command.arg("NX").arg("GET").arg("PX").arg(*expires);
        }
        Request::Delete(key) => {
            pipeline.cmd("UNLINK").arg(key.as_bytes());
        }
        Request::Touch(key) => {
            pipeline.cmd("TOUCH").arg(key.as_bytes());
        }
        Request::Asking(request) => {
            // It holds for one command.
            for command in commands(request).cmd_iter() {
                pipeline.cmd("ASKING").add_command(command.clone());
            }
        }
        Request::NoOp => {
            pipeline.cmd("PING");
        }
    }
    pipeline
}

/// What the replies to the commands for `request` mean.
///
/// # Errors
/// They are no replies to them.
pub(super) fn meant(request: &Request, replies: Vec<Resp>) -> Result<Reply, Unrelated> {
    let mut replies = replies.into_iter();
    if let Request::Asking(request) = request {
        let mut of_request = Vec::new();
        while let Some(asking) = replies.next() {
            // Whether it may be asked, the reply to the command says as well.
            if !matches!(asking, Resp::Okay | Resp::ServerError(_)) {
                return Err(Unrelated);
            }
            of_request.extend(replies.next());
        }
        return meant(request, of_request);
    }
    let (first, second) = (replies.next(), replies.next());
    match (request, first, second) {
        (Request::Get(_), Some(value), Some(left)) => looked_up(value, left),
        (Request::Set { .. }, Some(Resp::Okay), None) => Ok(Reply::Stored),
        (Request::Claim { .. }, Some(Resp::Nil), None) => Ok(Reply::Stored),
        (Request::Claim { .. }, Some(Resp::BulkString(body)), None) => {
            Ok(Reply::Value(found(body, Ttl::Unknown)))
        }
        (Request::Delete(_), Some(Resp::Int(0)), None) => Ok(Reply::NotFound),
        (Request::Delete(_), Some(Resp::Int(1)), None) => Ok(Reply::Deleted),
        (Request::Touch(_), Some(Resp::Int(0 | 1)), None) => Ok(Reply::NoOp),
        (Request::NoOp, Some(reply), None) => pong(&reply),
        (_, Some(Resp::ServerError(error)), None) => Ok(Reply::ServerError(told(&error))),
        _ => Err(Unrelated),
    }
}

fn looked_up(value: Resp, left: Resp) -> Result<Reply, Unrelated> {
    match (value, left) {
        // It holds a list, a hash or the like.
        (Resp::ServerError(error), Resp::Int(_)) if error.code() == "WRONGTYPE" => Ok(Reply::NoValue),
        (Resp::ServerError(error), Resp::Int(_) | Resp::ServerError(_))
        | (Resp::BulkString(_) | Resp::Nil, Resp::ServerError(error)) => Ok(Reply::ServerError(told(&error))),
        (Resp::Nil, Resp::Int(-2..)) | (Resp::BulkString(_), Resp::Int(-2)) => Ok(Reply::Absent(None)),
        (Resp::BulkString(body), Resp::Int(left @ -1..)) => {
            let left = u64::try_from(left).map(Duration::from_millis);
            Ok(Reply::Value(found(body, left.map_or(Ttl::Unlimited, Ttl::Left))))
        }
        _ => Err(Unrelated),
    }
}

fn found(body: Vec<u8>, ttl: Ttl) -> Value {
    Value { key: Bytes::new(), flags: 0, ttl, is_stale: false, is_awaited: false, body: body.into() }
}

/// The reply to a request for nothing. A user who may not even ask for that has learnt that the server is well.
pub(super) fn pong(reply: &Resp) -> Result<Reply, Unrelated> {
    match reply {
        Resp::SimpleString(text) if text == "PONG" => Ok(Reply::NoOp),
        Resp::ServerError(error) if error.code() == "NOPERM" => Ok(Reply::NoOp),
        Resp::ServerError(error) => Ok(Reply::ServerError(told(error))),
        _ => Err(Unrelated),
    }
}

fn told(error: &ServerError) -> String {
    match error.details() {
        Some(details) => format!("{} {details}", error.code()),
        None => error.code().to_owned(),
    }
}

/// What the server's clock says, since 1970.
pub(super) fn time(reply: &Resp) -> Option<Duration> {
    let Resp::Array(parts) = reply else { return None };
    let number = |part: &Resp| match part {
        Resp::BulkString(digits) => std::str::from_utf8(digits).ok()?.parse::<u64>().ok(),
        _ => None,
    };
    let [seconds, micros] = parts.as_slice() else { return None };
    let (seconds, micros) = (number(seconds)?, number(micros)?);
    Some(Duration::from_secs(seconds).saturating_add(Duration::from_micros(micros)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use ::redis::parse_redis_value;

    use super::*;
    use crate::key::RemoteKey;

    fn key() -> RemoteKey {
        RemoteKey::of_redis(&b"page:/a b\r\n"[..])
    }

    fn check(request: &Request, replies: &[&str], expected: Result<Reply, Unrelated>) {
        let replies_read = replies.iter().map(|reply| parse_redis_value(reply.as_bytes()).unwrap()).collect();
        assert_eq!(meant(request, replies_read), expected, "{request:?}: {replies:?}");
    }

    fn found(body: &'static str, ttl: Ttl) -> Result<Reply, Unrelated> {
        let (key, body) = (Bytes::new(), Bytes::from_static(body.as_bytes()));
        Ok(Reply::Value(Value { key, flags: 0, ttl, is_stale: false, is_awaited: false, body }))
    }

    fn refused(text: &str) -> Result<Reply, Unrelated> {
        Ok(Reply::ServerError(text.to_owned()))
    }

    #[test]
    fn commands_are_sent_as_the_protocol_has_them() {
        let sent = |request: &Request| String::from_utf8(commands(request).get_packed_pipeline()).unwrap();
        let key_sent = "$11\r\npage:/a b\r\n\r\n";
        assert_eq!(
            sent(&Request::Get(key())),
            format!("*2\r\n$3\r\nGET\r\n{key_sent}*2\r\n$4\r\nPTTL\r\n{key_sent}")
        );
        let set = Request::Set { key: key(), expires: 60_000, value: Bytes::from_static(b"b\r\n") };
        assert_eq!(
            sent(&set),
            format!("*5\r\n$3\r\nSET\r\n{key_sent}$3\r\nb\r\n\r\n$2\r\nPX\r\n$5\r\n60000\r\n")
        );
        let claim = Request::Claim { key: key(), expires: 2000, value: Bytes::from_static(b"me") };
        assert_eq!(
            sent(&claim),
            format!(
                "*7\r\n$3\r\nSET\r\n{key_sent}$2\r\nme\r\n$2\r\nNX\r\n$3\r\nGET\r\n$2\r\nPX\r\n$4\r\n2000\r\n"
            )
        );
        assert_eq!(sent(&Request::Delete(key())), format!("*2\r\n$6\r\nUNLINK\r\n{key_sent}"));
        assert_eq!(sent(&Request::Touch(key())), format!("*2\r\n$5\r\nTOUCH\r\n{key_sent}"));
        assert_eq!(sent(&Request::NoOp), "*1\r\n$4\r\nPING\r\n");
        let asking = "*1\r\n$6\r\nASKING\r\n";
        assert_eq!(
            sent(&Request::Asking(Box::new(Request::Get(key())))),
            format!("{asking}*2\r\n$3\r\nGET\r\n{key_sent}{asking}*2\r\n$4\r\nPTTL\r\n{key_sent}")
        );
    }

    #[test]
    fn a_look_up_brings_a_value_with_its_time_or_none() {
        let get = Request::Get(key());
        let body = "$4\r\nbody\r\n";
        check(&get, &[body, ":-1\r\n"], found("body", Ttl::Unlimited));
        check(&get, &[body, ":1500\r\n"], found("body", Ttl::Left(Duration::from_millis(1500))));
        check(&get, &["$0\r\n\r\n", ":0\r\n"], found("", Ttl::Left(Duration::ZERO)));
        check(&get, &["$-1\r\n", ":-2\r\n"], Ok(Reply::Absent(None)));
        let asking = Request::Asking(Box::new(Request::Get(key())));
        check(&asking, &["+OK\r\n", body, "+OK\r\n", ":-1\r\n"], found("body", Ttl::Unlimited));
        check(&asking, &["+OK\r\n", body, ":-1\r\n"], Err(Unrelated));
        // Gone, or written, between the two.
        check(&get, &[body, ":-2\r\n"], Ok(Reply::Absent(None)));
        check(&get, &["$-1\r\n", ":1500\r\n"], Ok(Reply::Absent(None)));
        check(&get, &["-WRONGTYPE Operation\r\n", ":-1\r\n"], Ok(Reply::NoValue));
        for error in ["LOADING Redis is loading", "NOAUTH Authentication required.", "MOVED 1 127.0.0.1:1"] {
            let line = format!("-{error}\r\n");
            check(&get, &[&line, &line], refused(error));
        }
        check(&get, &[body, "-NOPERM no\r\n"], refused("NOPERM no"));
    }

    #[test]
    fn replies_in_another_order_are_nobodys() {
        let get = Request::Get(key());
        let body = "$4\r\nbody\r\n";
        for replies in [
            &[":-1\r\n", body][..],
            &[body, body],
            &[":-2\r\n", "$-1\r\n"],
            &["+OK\r\n", ":-1\r\n"],
            &[body, ":-3\r\n"],
            &[body],
            &[],
        ] {
            check(&get, replies, Err(Unrelated));
        }
        let set = Request::Set { key: key(), expires: 1000, value: Bytes::new() };
        for replies in [&[":1\r\n"][..], &[body], &["+PONG\r\n"], &["$-1\r\n"]] {
            check(&set, replies, Err(Unrelated));
        }
        for replies in [&["+OK\r\n"][..], &[":2\r\n"], &[":-1\r\n"], &[body]] {
            check(&Request::Delete(key()), replies, Err(Unrelated));
        }
        check(&Request::NoOp, &["+OK\r\n"], Err(Unrelated));
    }

    #[test]
    fn writes_are_confirmed_or_refused() {
        let set = Request::Set { key: key(), expires: 1000, value: Bytes::new() };
        check(&set, &["+OK\r\n"], Ok(Reply::Stored));
        check(&set, &["-READONLY You can't write\r\n"], refused("READONLY You can't write"));
        check(&Request::Delete(key()), &[":1\r\n"], Ok(Reply::Deleted));
        check(&Request::Delete(key()), &[":0\r\n"], Ok(Reply::NotFound));
        check(&Request::Delete(key()), &["-ERR unknown command\r\n"], refused("ERR unknown command"));
        check(&Request::NoOp, &["+PONG\r\n"], Ok(Reply::NoOp));
        check(&Request::NoOp, &["-NOPERM no\r\n"], Ok(Reply::NoOp));
        check(&Request::NoOp, &["-LOADING\r\n"], refused("LOADING"));
    }
}
