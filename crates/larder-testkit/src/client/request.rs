//! A request to build, or to send as literal bytes.
//!
//! Out: the bytes of an HTTP/1 request. Nothing is added but a Host (under HTTP/1.1) and the framing of a body; no
//! User-Agent, no Accept.

use bytes::Bytes;

use crate::wire::to_bytes;

/// What a request carries.
#[derive(Clone, Debug, Default)]
pub enum Content {
    /// Nothing, and no framing field.
    #[default]
    None,
    /// By Content-Length.
    Length(Bytes),
    /// In one chunk.
    Chunked(Bytes),
    /// In chunks of at most so many bytes.
    Chunks(Bytes, usize),
}

/// A request. All parts are sent as they stand here.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: String,
    /// Origin-form, absolute-form or anything else.
    pub target: String,
    /// The value of Host; no such field where `None`.
    pub host: Option<String>,
    /// `1.1` or `1.0`.
    pub version: String,
    /// Further fields, in order.
    pub fields: Vec<(String, String)>,
    /// The body.
    pub content: Content,
    /// What follows the last chunk, or the last frame of HTTP/2.
    pub trailers: Vec<(String, String)>,
    /// Sent instead of all that; `method` still says how to read the answer.
    pub raw: Option<Bytes>,
}

impl Request {
    /// A request of HTTP/1.1 for `host`.
    pub fn new(method: &str, target: &str, host: &str) -> Self {
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            host: Some(host.to_owned()),
            version: "1.1".to_owned(),
            fields: Vec::new(),
            content: Content::None,
            trailers: Vec::new(),
            raw: None,
        }
    }

    /// Literal bytes. The method is read from them for the sake of HEAD.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let method = bytes.split(|&b| b == b' ').next().unwrap_or_default();
        Self { raw: Some(bytes.clone()), ..Self::new(&crate::wire::latin1(method), "", "") }
    }

    /// Adds a field.
    pub fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the body, with a Content-Length.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.content = Content::Length(body.into());
        self
    }

    /// The bytes to send.
    pub fn to_http1(&self) -> Bytes {
        if let Some(raw) = &self.raw {
            return raw.clone();
        }
        let mut head = format!("{} {} HTTP/{}\r\n", self.method, self.target, self.version);
        let mut line = |name: &str, value: &str| {
            head.push_str(name);
            head.push_str(": ");
            head.push_str(value);
            head.push_str("\r\n");
        };
        if let Some(host) = &self.host {
            line("Host", host);
        }
        for (name, value) in &self.fields {
            line(name, value);
        }
        match &self.content {
            Content::None => {}
            Content::Length(body) => line("Content-Length", &body.len().to_string()),
            Content::Chunked(_) | Content::Chunks(..) => line("Transfer-Encoding", "chunked"),
        }
        head.push_str("\r\n");
        let mut out = to_bytes(&head);
        let trailers: String =
            self.trailers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        match &self.content {
            Content::None => {}
            Content::Length(body) => out.extend_from_slice(body),
            Content::Chunked(body) => chunks(body, body.len(), &trailers, &mut out),
            Content::Chunks(body, most) => chunks(body, *most, &trailers, &mut out),
        }
        out.into()
    }
}

/// `body` in chunks of at most `most` bytes, the last chunk, and `trailers`.
fn chunks(body: &[u8], most: usize, trailers: &str, out: &mut Vec<u8>) {
    for chunk in body.chunks(most.max(1)) {
        out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n");
    out.extend_from_slice(&to_bytes(trailers));
    out.extend_from_slice(b"\r\n");
}
