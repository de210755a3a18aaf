//! The vocabulary of the tables: what is sent, and what has to come of it.

/// A row: bytes, and what has to come of them.
pub(crate) struct Case {
    pub(crate) name: String,
    /// Characters up to U+00FF stand for the bytes of that number, others for their UTF-8.
    pub(crate) send: String,
    pub(crate) expect: Expect,
    /// Lines at the top of the config.
    pub(crate) config: &'static str,
}

/// What has to come of it.
pub(crate) enum Expect {
    /// Refused by the parser: this status, the connection closed and never read on, nothing at the origin.
    Refused(u16),
    /// The content broke on its way: as before, but the origin may have seen the beginning, never an end.
    Broken(u16),
    /// Answered by larder itself; the connection goes on, nothing at the origin.
    Own(u16),
    /// Passed on, in exactly this form.
    Sent(Sent),
}

/// A request as the origin has to see it. The fields that larder writes are checked apart and not listed.
pub(crate) struct Sent {
    pub(crate) line: String,
    pub(crate) host: String,
    /// `name: value`, in any order.
    pub(crate) fields: Vec<String>,
    pub(crate) content: Content,
    /// The client's connection is closed after the response.
    pub(crate) closes: bool,
}

/// The content that the origin has to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// None, and no framing field.
    None,
    /// By Content-Length.
    Length(String),
    /// In chunks.
    Chunked(String),
}

impl Case {
    /// Expects a refusal.
    pub(crate) fn refused(name: &str, status: u16, send: impl Into<String>) -> Self {
        Self::new(name, send, Expect::Refused(status))
    }

    /// Expects content that breaks.
    pub(crate) fn broken(name: &str, status: u16, send: impl Into<String>) -> Self {
        Self::new(name, send, Expect::Broken(status))
    }

    /// Expects larder's own answer.
    pub(crate) fn own(name: &str, status: u16, send: impl Into<String>) -> Self {
        Self::new(name, send, Expect::Own(status))
    }

    /// Expects `line` at the origin, for `a.test`, without fields or content unless they are added.
    pub(crate) fn sent(name: &str, send: impl Into<String>, line: &str) -> Self {
        let sent = Sent {
            line: line.to_owned(),
            host: "a.test".to_owned(),
            fields: Vec::new(),
            content: Content::None,
            closes: false,
        };
        Self::new(name, send, Expect::Sent(sent))
    }

    fn new(name: &str, send: impl Into<String>, expect: Expect) -> Self {
        Self { name: name.to_owned(), send: send.into(), expect, config: "" }
    }

    fn having(mut self, change: impl FnOnce(&mut Sent)) -> Self {
        if let Expect::Sent(sent) = &mut self.expect {
            change(sent);
        }
        self
    }

    pub(crate) fn host(self, host: &str) -> Self {
        self.having(|sent| sent.host = host.to_owned())
    }

    pub(crate) fn fields(self, fields: &[&str]) -> Self {
        self.having(|sent| sent.fields = fields.iter().map(|&line| line.to_owned()).collect())
    }

    pub(crate) fn length(self, content: &str) -> Self {
        self.having(|sent| sent.content = Content::Length(content.to_owned()))
    }

    pub(crate) fn chunked(self, content: &str) -> Self {
        self.having(|sent| sent.content = Content::Chunked(content.to_owned()))
    }

    pub(crate) fn closes(self) -> Self {
        self.having(|sent| sent.closes = true)
    }

    pub(crate) fn config(mut self, config: &'static str) -> Self {
        self.config = config;
        self
    }
}

/// A GET with further lines, each ended by CRLF.
pub(crate) fn get(lines: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n")
}

/// A POST with further lines, each ended by CRLF, and what follows its head.
pub(crate) fn post(lines: &str, content: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n{content}")
}
