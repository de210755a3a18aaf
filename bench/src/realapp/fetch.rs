//! What a client sees: status, content type, `Cache-Status` and body, fetched with curl.
//!
//! In: targets. Out: [`Answer`]s, and whether two of them are the same. A program that nobody here wrote does the
//! fetching, so that larder is not judged by its own reading of HTTP.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Values that an application makes anew for every request: what stands before each, and the byte that ends it.
pub(super) type MadeAnew = [(&'static [u8], u8)];

/// The line that curl writes behind each of several answers.
const BETWEEN: &str = "== an answer ends here ==";

/// An answer as curl saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: String,
    pub(super) cache_status: String,
    pub(super) location: String,
    pub(super) content_encoding: String,
    /// Each line of Set-Cookie.
    pub(super) set_cookies: Vec<String>,
    /// All other fields, their names in small letters.
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn is_hit(&self) -> bool {
        self.cache_status.starts_with("larder; hit")
    }

    /// The first line of any field but those above.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body, read as text.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body without what is made anew for every request.
    fn lasting(&self, made_anew: &MadeAnew) -> Vec<u8> {
        made_anew.iter().fold(self.body.clone(), |body, (start, end)| without(&body, start, *end))
    }

    /// The first difference between the two, values that are `made_anew` aside.
    pub(super) fn difference(&self, other: &Self, made_anew: &MadeAnew) -> Option<String> {
        if self.status != other.status {
            return Some(format!("status {}, not {}", other.status, self.status));
        }
        let fields = |of: &Self| [of.content_type.clone(), of.content_encoding.clone(), of.location.clone()];
        if fields(self) != fields(other) {
            return Some(format!("fields {:?}, not {:?}", fields(other), fields(self)));
        }
        let (mine, theirs) = (self.lasting(made_anew), other.lasting(made_anew));
        if mine == theirs {
            return None;
        }
        let at = mine.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
        let near = |body: &[u8]| {
            let part = body.get(at.saturating_sub(40)..body.len().min(at + 40));
            String::from_utf8_lossy(part.unwrap_or_default()).into_owned()
        };
        Some(format!("byte {at}: `{}`, not `{}`", near(&theirs), near(&mine)))
    }
}

/// `body` with everything between each `start` and the next `end` cut out.
fn without(body: &[u8], start: &[u8], end: u8) -> Vec<u8> {
    let mut kept = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.windows(start.len()).position(|window| window == start) {
        let (before, after) = rest.split_at(at + start.len());
        kept.extend_from_slice(before);
        let value = after.iter().position(|byte| *byte == end).unwrap_or(after.len());
        rest = &after[value..];
    }
    kept.extend_from_slice(rest);
    kept
}

/// Asks `address` for targets on `host`.
#[derive(Clone, Copy)]
pub(super) struct Client {
    pub(super) address: SocketAddr,
    /// What Host says; an application and larder are asked in the same words.
    pub(super) host: SocketAddr,
    /// Whether answers may be compressed, as browsers ask for them.
    pub(super) compressed: bool,
}

impl Client {
    pub(super) fn get(&self, target: &str) -> Result<Answer> {
        self.curl(target, &[])
    }

    pub(super) fn ask_with(&self, target: &str, field: &str) -> Result<Answer> {
        self.curl(target, &["-H", field])
    }

    pub(super) fn post(&self, target: &str, fields: &[(&str, String)]) -> Result<Answer> {
        let pairs: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let arguments: Vec<&str> =
            pairs.iter().flat_map(|pair| ["--data-urlencode", pair.as_str()]).collect();
        self.curl(target, &arguments)
    }

    /// With fields of the request, as curl takes them, and a form where there is one.
    pub(super) fn send(&self, target: &str, fields: &[String], form: &[(&str, &str)]) -> Result<Answer> {
        let mut arguments = Vec::new();
        for field in fields {
            arguments.extend(["-H", field.as_str()]);
        }
        let pairs: Vec<String> = form.iter().map(|(name, value)| format!("{name}={value}")).collect();
        for pair in &pairs {
            arguments.extend(["--data-urlencode", pair.as_str()]);
        }
        self.curl(target, &arguments)
    }

    /// Asks, reads the beginning of the answer and leaves. Returns how many bytes of the body it has seen.
    pub(super) fn leave(&self, target: &str) -> Result<u64> {
        let output = Command::new("curl")
            .args([
                "-sS",
                "-o",
                "/dev/null",
                "-w",
                "%{size_download}",
                "--limit-rate",
                "200k",
                "--max-time",
                "1",
            ])
            .arg(format!("http://{}{target}", self.address))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .context("curl")?;
        ensure!(!output.status.success(), "{target}: it was read to its end");
        String::from_utf8_lossy(&output.stdout).trim().parse().context("curl says no number")
    }

    /// Asks for each target in turn, with one more field where there is one. All go through one curl, which keeps its
    /// connection: thousands of requests would cost a process each otherwise.
    pub(super) fn in_turn(&self, requests: &[(&str, Option<&str>)]) -> Result<Vec<Answer>> {
        let mut config = String::new();
        for (number, (target, field)) in requests.iter().enumerate() {
            if number > 0 {
                config.push_str("next\n");
            }
            writeln!(config, "url = \"http://{}{target}\"\nheader = \"Host: {}\"", self.address, self.host)?;
            if let Some(field) = field {
                writeln!(config, "header = \"{field}\"")?;
            }
            if self.compressed {
                config.push_str("compressed\n");
            }
            writeln!(config, "include\ngloboff\nhttp1.1\nmax-time = 60\nwrite-out = \"\\n{BETWEEN}\\n\"")?;
        }
        let mut child = Command::new("curl")
            .args(["-sS", "-K", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .context("curl")?;
        // curl reads all of it before it asks for anything, so it cannot wait for its output to be read meanwhile.
        child.stdin.take().context("curl has no input")?.write_all(config.as_bytes())?;
        let output = child.wait_with_output().context("curl")?;
        ensure!(output.status.success(), "curl: {}", output.status);
        let answers = split(&output.stdout);
        ensure!(answers.len() == requests.len(), "{} answers to {} requests", answers.len(), requests.len());
        answers.into_iter().map(|answer| read(answer).context("no HTTP/1 answer")).collect()
    }

    /// With `arguments` of curl.
    pub(super) fn curl(&self, target: &str, arguments: &[&str]) -> Result<Answer> {
        let output = Command::new("curl")
            .args(["-sS", "-i", "--http1.1", "--path-as-is", "--max-time", "60"])
            .args(["-H", &format!("Host: {}", self.host)])
            .args(self.compressed.then_some("--compressed"))
            .args(arguments)
            .arg(format!("http://{}{target}", self.address))
            .stdin(Stdio::null())
            .output()
            .context("curl")?;
        if !output.status.success() {
            std::io::stderr().write_all(&output.stderr)?;
        }
        ensure!(output.status.success(), "curl {target}: {}", output.status);
        read(&output.stdout).with_context(|| format!("{target}: no HTTP/1 answer"))
    }
}

/// The answers that curl wrote one after the other.
fn split(mut output: &[u8]) -> Vec<&[u8]> {
    let end = format!("\n{BETWEEN}\n");
    let mut answers = Vec::new();
    while let Some(at) = output.windows(end.len()).position(|window| window == end.as_bytes()) {
        answers.push(&output[..at]);
        output = &output[at + end.len()..];
    }
    answers
}

fn read(answer: &[u8]) -> Option<Answer> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let mut read = Answer { status, body: answer[end + 4..].to_vec(), ..Answer::default() };
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        match name.to_ascii_lowercase().as_str() {
            "content-type" => read.content_type = value.to_owned(),
            "cache-status" => read.cache_status = value.to_owned(),
            "location" => read.location = value.to_owned(),
            "content-encoding" => read.content_encoding = value.to_owned(),
            "set-cookie" => read.set_cookies.push(value.to_owned()),
            other => read.fields.push((other.to_owned(), value.to_owned())),
        }
    }
    Some(read)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ANEW: &MadeAnew = &[(b"\"id\":\"", b'"'), (b"\"took\":", b',')];

    fn page(body: &str) -> Answer {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nCache-Status: larder; hit; ttl=9\r\n\r\n";
        read(format!("{head}{body}").as_bytes()).unwrap()
    }

    #[test]
    fn answers_to_several_requests_are_told_apart() {
        let one = "HTTP/1.1 200 OK\r\n\r\n<p>\n";
        let output = format!("{one}\n{BETWEEN}\nHTTP/1.1 204 None\r\n\r\n\n{BETWEEN}\n");
        let answers = split(output.as_bytes());
        assert_eq!(answers.len(), 2);
        assert_eq!(answers[0], one.as_bytes());
        assert_eq!(read(answers[1]).unwrap().status, 204);
    }

    #[test]
    fn only_what_is_made_anew_may_differ() {
        let one = page(r#"<p>{"id":"a1","x":1,"took":17,"y":2}"#);
        let other = page(r#"<p>{"id":"b22","x":1,"took":180,"y":2}"#);
        assert_eq!(one.difference(&other, ANEW), None);
        assert!(one.is_hit());
        assert!(one.difference(&page(r#"<p>{"id":"b22","x":2,"took":180,"y":2}"#), ANEW).is_some());
        assert!(one.difference(&Answer { status: 404, ..one.clone() }, ANEW).is_some());
        assert!(one.difference(&Answer { content_type: String::new(), ..one.clone() }, ANEW).is_some());
    }
}
