//! A visitor with a browser: cookies of their own, an address of their own.
//!
//! In: targets and forms. Out: [`Answer`]s. curl does the talking and keeps the cookies, so that larder is judged
//! neither by its own reading of HTTP nor by its own reading of cookies. Redirects are not followed: where an answer
//! leads to is part of what is looked at.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// An answer as curl saw it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) cache_status: String,
    pub(super) location: String,
    body: String,
}

impl Answer {
    pub(super) fn says(&self, text: &str) -> bool {
        self.body.contains(text)
    }

    pub(super) fn length(&self) -> usize {
        self.body.len()
    }

    pub(super) fn body(&self) -> &str {
        self.body.trim()
    }

    pub(super) fn is_hit(&self) -> bool {
        self.cache_status.starts_with("larder; hit")
    }

    /// Whether it was made for this request alone: neither shared with others nor kept for them.
    pub(super) fn is_own(&self) -> bool {
        self.cache_status.starts_with("larder; fwd=")
            && !["; stored", "; collapsed"].iter().any(|part| self.cache_status.contains(part))
    }
}

/// Somebody at an address of the loopback net.
#[derive(Clone)]
pub(super) struct Visitor {
    address: SocketAddr,
    from: Ipv4Addr,
    jar: PathBuf,
}

impl Visitor {
    /// A visitor of `address` who has no cookies yet and comes from 127.0.0.`from`; `name` is unique in `work`.
    pub(super) fn new(address: SocketAddr, work: &Path, name: &str, from: u8) -> Self {
        Self { address, from: Ipv4Addr::new(127, 0, 0, from), jar: work.join(format!("cookies-{name}")) }
    }

    pub(super) fn get(&self, target: &str) -> Result<Answer> {
        self.curl(target, &[], true)
    }

    /// As [`Self::get`], without keeping cookies: several may ask at once.
    pub(super) fn look_at(&self, target: &str) -> Result<Answer> {
        self.curl(target, &[], false)
    }

    pub(super) fn post(&self, target: &str, form: &[(&str, &str)]) -> Result<Answer> {
        self.post_from(target, target, form, &[])
    }

    /// As [`Self::post`], from a form on the page `from` and with more header fields.
    pub(super) fn post_from(
        &self,
        from: &str,
        target: &str,
        form: &[(&str, &str)],
        fields: &[&str],
    ) -> Result<Answer> {
        let mut arguments = vec!["-e".to_owned(), format!("http://{}{from}", self.address)];
        for (name, value) in form {
            arguments.extend(["--data-urlencode".to_owned(), format!("{name}={value}")]);
        }
        for field in fields {
            arguments.extend(["-H".to_owned(), (*field).to_owned()]);
        }
        self.curl(target, &arguments, true)
    }

    /// Whether the browser keeps a cookie whose name begins like this.
    pub(super) fn has_cookie(&self, start: &str) -> bool {
        let jar = fs::read_to_string(&self.jar).unwrap_or_default();
        jar.lines().any(|line| line.split('\t').nth(5).is_some_and(|name| name.starts_with(start)))
    }

    fn curl(&self, target: &str, arguments: &[String], keeps_cookies: bool) -> Result<Answer> {
        let mut command = Command::new("curl");
        command
            .args(["-sS", "-i", "--http1.1", "--max-time", "30", "--interface", &self.from.to_string()])
            .arg("-b")
            .arg(&self.jar);
        if keeps_cookies {
            command.arg("-c").arg(&self.jar);
        }
        // An absolute address, where a redirect gave one.
        let url = if target.starts_with("http://") {
            target.to_owned()
        } else {
            format!("http://{}{target}", self.address)
        };
        let output = command.args(arguments).arg(url).stdin(Stdio::null()).output().context("curl")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{target}: curl: {}", said.trim());
        read(&String::from_utf8_lossy(&output.stdout)).with_context(|| format!("{target}: no HTTP/1 answer"))
    }
}

fn read(answer: &str) -> Option<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let field = |wanted: &str| {
        let mut fields = head.lines().filter_map(|line| line.split_once(": "));
        fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.to_owned())
    };
    Some(Answer {
        status,
        cache_status: field("cache-status").unwrap_or_default(),
        location: field("location").unwrap_or_default(),
        body: body.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_shared_or_kept_is_not_ones_own() {
        for (said, own, hit) in [
            ("larder; hit; ttl=1", false, true),
            ("larder; fwd=uri-miss; fwd-status=200; stored; ttl=1", false, false),
            ("larder; fwd=uri-miss; fwd-status=200; collapsed", false, false),
            ("larder; fwd=request; fwd-status=200; detail=session-cookie", true, false),
            ("larder; fwd=bypass; fwd-status=200", true, false),
            ("", false, false),
        ] {
            let answer =
                read(&format!("HTTP/1.1 200 OK\r\ncache-status: {said}\r\nLocation: /x\r\n\r\npage"))
                    .unwrap();
            assert_eq!((answer.is_own(), answer.is_hit()), (own, hit), "{said}");
            assert_eq!((answer.status, answer.location.as_str(), answer.body()), (200, "/x", "page"));
        }
    }
}
