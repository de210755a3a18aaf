//! Where a Redis or Valkey listens, and who larder is there: a URL as clients of Redis write it.
//!
//! In: `redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]`, or `unix:///path?db=N&user=USER&pass=PASSWORD`. Out: its parts. Errors never
//! quote it, because of the password. `rediss` in place of `redis` is TLS. What other clients take and larder does not is told by name:
//! several servers.
//! Names are looked up when a connection is made, by whoever makes it.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use crate::document::{Node, Value};
use crate::reading::{At, Reading};
use crate::schema::{Setting, Shape, Text};
use crate::told::hidden::MASK;

/// Redis's own port.
const DEFAULT_PORT: u16 = 6379;
/// The greatest number of a database. Servers have 16 unless they are told otherwise.
const DATABASE_MAX: u32 = 65_535;

/// Where a server listens, and who larder is there. Prints neither user nor password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RedisUrl {
    /// Where it listens.
    pub place: UrlPlace,
    /// The user of its access control list.
    pub user: Option<String>,
    /// Its password, in plain text.
    pub password: Option<String>,
    /// The number of the database.
    pub database: u32,
    /// Whether TLS is spoken.
    pub is_tls: bool,
}

/// Where a Redis listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UrlPlace {
    /// TCP.
    Tcp {
        /// A name in lower case or an IP address, an IPv6 address without brackets.
        host: String,
        /// 6379 where none was given.
        port: u16,
    },
    /// A Unix socket.
    Unix(PathBuf),
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisUrl({:?}/{})", self.place, self.database)
    }
}

const TEXT: Text = Text {
    noun: "a URL of Redis",
    examples: r#""redis://127.0.0.1:6379/0", "redis://:PASSWORD@cache.internal", "unix:///run/redis/redis.sock?db=1""#,
    about: "`redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]`, `rediss://` for TLS, or `unix://` and an absolute path, with \
            `?db=N&user=USER&pass=PASSWORD` where it is needed. `valkey` may stand for `redis`. User and password are percent-encoded, and never appear in messages and logs.",
    pattern: Some("^(rediss?|valkeys?)://|^((redis|valkey)\\+)?unix:/"),
};

/// What is said of several servers.
pub(crate) const ONE_SERVER: &str = "a URL names one server; where Sentinel watches over several: { sentinel = [\"s1:26379\", \"s2:26379\", \"s3:26379\"], \
     master = \"NAME\" }; for a cluster: { cluster = [\"n1:6379\", \"n2:6379\"] }";

impl Setting for RedisUrl {
    fn shape() -> Shape {
        Shape::Text(TEXT)
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let (found, hint) = match &node.value {
            Value::Text(text) => match parse(text) {
                Ok(url) => {
                    let (shown, forms) = shown(text, &url);
                    reading.hide(node, shown, forms);
                    return Some(url);
                }
                Err(hint) => ("another text".to_owned(), hint),
            },
            Value::List(_) => ("a list".to_owned(), ONE_SERVER),
            _ => (reading.found(node), ""),
        };
        let hint = (!hint.is_empty()).then(|| hint.to_owned());
        let problem = reading.problem(&node.place, at, found).expected(TEXT.expected()).hint_if(hint);
        reading.refuse(problem);
        None
    }
}

/// A good URL without its login, and the password as it may stand elsewhere.
fn shown(text: &str, url: &RedisUrl) -> (String, Vec<String>) {
    let mut forms: Vec<_> = url.password.clone().into_iter().collect();
    let shown = match (text.split_once("://"), text.split_once('?')) {
        (Some((scheme, rest)), _) if !scheme.contains("unix") => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            match authority.rsplit_once('@') {
                None => text.to_owned(),
                Some((login, server)) => {
                    forms.extend(login.split_once(':').map(|(_, password)| password.to_owned()));
                    format!("{scheme}://{MASK}@{server}{path}")
                }
            }
        }
        (_, Some((path, query))) => {
            let parts = query.split('&').map(|part| match part.split_once('=') {
                Some((name @ ("user" | "pass"), value)) => {
                    forms.extend((name == "pass").then(|| value.to_owned()));
                    format!("{name}={MASK}")
                }
                _ => part.to_owned(),
            });
            format!("{path}?{}", parts.collect::<Vec<_>>().join("&"))
        }
        (_, None) => text.to_owned(),
    };
    (shown, forms)
}

/// Reads a URL.
///
/// # Errors
/// A hint, which quotes nothing.
fn parse(text: &str) -> Result<RedisUrl, &'static str> {
    let Some((scheme, rest)) = text.split_once(':') else {
        return Err("a URL begins with redis:// or unix://");
    };
    match scheme {
        "redis" | "valkey" | "rediss" | "valkeys" => {
            let url = tcp(rest.strip_prefix("//").ok_or("two slashes follow the scheme: redis://")?)?;
            Ok(RedisUrl { is_tls: scheme.ends_with('s') && scheme != "redis", ..url })
        }
        "unix" | "redis+unix" | "valkey+unix" => unix(rest),
        _ if scheme.contains("sentinel") || scheme.contains("cluster") => Err(ONE_SERVER),
        _ => Err("a URL begins with redis:// or unix://"),
    }
}

/// What follows `redis://`.
fn tcp(rest: &str) -> Result<RedisUrl, &'static str> {
    if rest.contains(['?', '#']) {
        return Err("nothing follows the number of the database");
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, server) = match authority.rsplit_once('@') {
        Some((login, server)) => (Some(login), server),
        None => (None, authority),
    };
    if server.contains(',') {
        return Err(ONE_SERVER);
    }
    let (user, password) = match login.map(|login| login.split_once(':')) {
        None => (None, None),
        Some(Some((user, password))) => (decoded(user)?, decoded(password)?),
        Some(None) => {
            return Err("a user has a password: redis://USER:PASSWORD@HOST, or redis://:PASSWORD@HOST");
        }
    };
    let (host, port) = host_and_port(server, DEFAULT_PORT)?;
    let database = if path.is_empty() { 0 } else { database(path)? };
    with_login(UrlPlace::Tcp { host, port }, user, password, database)
}

/// What follows `unix:`.
fn unix(rest: &str) -> Result<RedisUrl, &'static str> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path = decoded(path.strip_prefix("//").unwrap_or(path))?.unwrap_or_default();
    // 107 bytes is what a socket's address can hold (unix(7)).
    let fits = path.starts_with('/') && path.len() > 1 && path.len() <= 107 && !path.contains('\0');
    if !fits {
        return Err("a Unix socket needs an absolute path of at most 107 bytes");
    }
    let (mut number, mut user, mut password) = (0, None, None);
    for part in query.split('&').filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some(("db", text)) => number = database(text)?,
            Some(("user", text)) => user = decoded(text)?,
            Some(("pass", text)) => password = decoded(text)?,
            _ => return Err("behind `?` may stand db, user and pass"),
        }
    }
    with_login(UrlPlace::Unix(PathBuf::from(path)), user, password, number)
}

fn with_login(
    place: UrlPlace,
    user: Option<String>,
    password: Option<String>,
    database: u32,
) -> Result<RedisUrl, &'static str> {
    match user.is_some() && password.is_none() {
        true => Err("a user has a password"),
        false => Ok(RedisUrl { place, user, password, database, is_tls: false }),
    }
}

pub(crate) fn host_and_port(server: &str, default: u16) -> Result<(String, u16), &'static str> {
    let brackets = "an IPv6 address stands in brackets: redis://[::1]:6379";
    let (host, port) = match server.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => {
            let port = rest.strip_prefix(':');
            if !matches!(host.parse(), Ok(IpAddr::V6(_))) || port.is_none() && !rest.is_empty() {
                return Err(brackets);
            }
            (host.to_ascii_lowercase(), port)
        }
        None if server.matches(':').count() > 1 => return Err(brackets),
        None => {
            let (host, port) =
                server.split_once(':').map_or((server, None), |(host, port)| (host, Some(port)));
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            if host.is_empty() || !host.bytes().all(is_name) {
                return Err("a URL names a host: redis://127.0.0.1:6379");
            }
            (host.to_ascii_lowercase(), port)
        }
    };
    let port = match port {
        None => default,
        Some(port) => match number(port).and_then(|port| u16::try_from(port).ok()) {
            Some(port) if port != 0 => port,
            _ => return Err("a port is from 1 to 65535"),
        },
    };
    Ok((host, port))
}

fn database(text: &str) -> Result<u32, &'static str> {
    let text = text.strip_suffix('/').unwrap_or(text);
    number(text).filter(|number| *number <= DATABASE_MAX).ok_or("a database is a number, such as 0")
}

/// Digits and nothing else.
fn number(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// The text behind percent-encoding; `None` where it is empty.
fn decoded(text: &str) -> Result<Option<String>, &'static str> {
    let wrong = "a percent sign is written %25, and other characters in the same way, as UTF-8";
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, further)) = rest.split_first() {
        rest = further;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = further.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        bytes.push(digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).ok_or(wrong)?);
        rest = further.get(2..).unwrap_or_default();
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong)?;
    Ok((!text.is_empty()).then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::redis_server::RedisServer;

    fn check(text: &str, printed: &str, login: (Option<&str>, Option<&str>)) {
        match parse(text) {
            Ok(url) => {
                let shown = format!("{url:?}");
                assert_eq!(RedisServer::from(url.clone()).to_string(), printed, "{text}");
                assert_eq!((url.user.as_deref(), url.password.as_deref()), login, "{text}");
                assert!(login.1.is_none_or(|password| !shown.contains(password)), "{shown}");
            }
            Err(hint) => panic!("{text}: {hint}"),
        }
    }

    #[test]
    fn urls_have_a_place_a_login_and_a_database() {
        check("redis://127.0.0.1", "redis://127.0.0.1:6379/0", (None, None));
        check("redis://Cache.Internal:7000/3", "redis://cache.internal:7000/3", (None, None));
        check("valkey://cache/", "redis://cache:6379/0", (None, None));
        check("rediss://:s3cret@cache", "rediss://cache:6379/0", (None, Some("s3cret")));
        check("valkeys://cache:7/2", "rediss://cache:7/2", (None, None));
        check("redis://[::1]/1", "redis://[::1]:6379/1", (None, None));
        check("redis://:s3cret@cache", "redis://cache:6379/0", (None, Some("s3cret")));
        check(
            "redis://larder:p%40ss%2f%25@cache:1/15",
            "redis://cache:1/15",
            (Some("larder"), Some("p@ss/%")),
        );
        check("redis://a:b@c@cache", "redis://cache:6379/0", (Some("a"), Some("b@c")));
        check("redis://:@cache", "redis://cache:6379/0", (None, None));
        check("unix:/run/r.sock", "unix:///run/r.sock?db=0", (None, None));
        check("unix:///run/r.sock?db=2", "unix:///run/r.sock?db=2", (None, None));
        check("redis+unix:///run/r.sock?pass=s3cret", "unix:///run/r.sock?db=0", (None, Some("s3cret")));
        check("valkey+unix:///r?user=larder&pass=x%26y", "unix:///r?db=0", (Some("larder"), Some("x&y")));
    }

    #[test]
    fn what_is_no_such_url_has_a_hint_that_quotes_nothing() {
        for (text, part) in [
            ("", "begins with"),
            ("127.0.0.1:6379", "begins with"),
            ("http://cache", "begins with"),
            ("redis:cache", "two slashes"),
            ("redis-sentinel://cache", "Sentinel"),
            ("redis+cluster://cache", "cluster"),
            ("redis://a,b", "several"),
            ("redis://:s3cret@a:1,b:2/0", "several"),
            ("redis://s3cret@cache", "password"),
            ("redis://user:@cache", "password"),
            ("unix:///r?user=a", "password"),
            ("redis://", "names a host"),
            ("redis://a b", "names a host"),
            ("redis://cache:0", "port"),
            ("redis://cache:+1", "port"),
            ("redis://cache:65536", "port"),
            ("redis://::1", "brackets"),
            ("redis://[cache]", "brackets"),
            ("redis://cache/x", "database"),
            ("redis://cache/65536", "database"),
            ("redis://cache/-1", "database"),
            ("redis://cache/0?protocol=resp3", "nothing follows"),
            ("redis://:%zz@cache", "percent"),
            ("redis://:%ff@cache", "percent"),
            ("unix:r.sock", "absolute"),
            ("unix:///r?db=0&timeout=1", "db, user and pass"),
        ] {
            let hint = parse(text).err().unwrap_or_default();
            assert!(hint.contains(part), "{text}: {hint}");
            assert!(!hint.contains("s3cret"), "{text}: {hint}");
        }
    }
}
