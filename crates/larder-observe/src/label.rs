//! Label values that are fixed at compile time: an enum's variants are the array's indices, so counting never hashes.
//!
//! The reason enums of other crates implement [`Label`]; [`Vocabulary`] tells the counters how many cells each needs.
//! Labels whose values come from the configuration (sites, stores, origins) are numbered in `names`.

use http::{Method, StatusCode};

/// An enum whose variants are the values of one metric label.
pub trait Label {
    /// The label's name, such as `reason`.
    const NAME: &'static str;
    /// All values, in the order of [`Label::index`]. Lower case, words joined by hyphens.
    const TOKENS: &'static [&'static str];

    /// This variant's place in [`Label::TOKENS`].
    fn index(&self) -> usize;

    /// This variant's value.
    fn token(&self) -> &'static str {
        Self::TOKENS.get(self.index()).copied().unwrap_or("other")
    }
}

/// For a family that nothing counts in yet.
impl Label for std::convert::Infallible {
    const NAME: &'static str = "reason";
    const TOKENS: &'static [&'static str] = &[];

    fn index(&self) -> usize {
        match *self {}
    }
}

/// The values of every label that other crates own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vocabulary {
    /// Why a request was forwarded (RFC 9211 2.2); `hit` is added here.
    pub forward: &'static [&'static str],
    /// Why a response was not stored.
    pub not_stored: &'static [&'static str],
    /// What kind of invalidation took place.
    pub invalidation: &'static [&'static str],
    /// Why something is fetched that nobody waits for.
    pub refresh: &'static [&'static str],
    /// What became of a URL that is not stored.
    pub before: &'static [&'static str],
    /// Why an include of a page failed.
    pub fragment_failure: &'static [&'static str],
    /// Those of them that are limits of page assembly.
    pub assembly_limit: &'static [&'static str],
    /// In what a template may be written.
    pub language: &'static [&'static str],
    /// What may be wrong with a template.
    pub template_problem: &'static [&'static str],
}

impl Vocabulary {
    /// The vocabulary that these enums make, without words of page assembly.
    pub const fn of<Forward, NotStored, Invalidation, Refresh>() -> Self
    where
        Forward: Label,
        NotStored: Label,
        Invalidation: Label,
        Refresh: Label,
    {
        Self {
            forward: Forward::TOKENS,
            not_stored: NotStored::TOKENS,
            invalidation: Invalidation::TOKENS,
            refresh: Refresh::TOKENS,
            before: &[],
            fragment_failure: &[],
            assembly_limit: &[],
            language: &[],
            template_problem: &[],
        }
    }

    /// The same with the words for URLs that are not stored.
    pub const fn with_before<Before: Label>(self) -> Self {
        Self { before: Before::TOKENS, ..self }
    }

    /// The same with those words. `limits` are the failures that are limits.
    pub const fn with_assembly<Failure, Language, Problem>(self, limits: &'static [&'static str]) -> Self
    where
        Failure: Label,
        Language: Label,
        Problem: Label,
    {
        Self {
            fragment_failure: Failure::TOKENS,
            assembly_limit: limits,
            language: Language::TOKENS,
            template_problem: Problem::TOKENS,
            ..self
        }
    }
}

/// A request method as a label. Clients choose methods freely, so unknown ones share one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodLabel(u8);

impl From<&Method> for MethodLabel {
    fn from(method: &Method) -> Self {
        let name = method.as_str();
        let last = Self::TOKENS.len() - 1;
        let index = Self::TOKENS[..last].iter().position(|token| *token == name).unwrap_or(last);
        Self(u8::try_from(index).unwrap_or(0))
    }
}

impl Label for MethodLabel {
    const NAME: &'static str = "method";
    const TOKENS: &'static [&'static str] =
        &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "PURGE", "other"];

    fn index(&self) -> usize {
        usize::from(self.0)
    }
}

/// The class of a status code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeClass(u8);

impl From<StatusCode> for CodeClass {
    fn from(status: StatusCode) -> Self {
        match status.as_u16() / 100 {
            class @ 1..=5 => Self(class as u8 - 1),
            _ => Self(5),
        }
    }
}

impl Label for CodeClass {
    const NAME: &'static str = "code_class";
    const TOKENS: &'static [&'static str] = &["1xx", "2xx", "3xx", "4xx", "5xx", "other"];

    fn index(&self) -> usize {
        usize::from(self.0)
    }
}

/// Where an answer came from, as far as its latency is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// A stored response, without asking the origin.
    Hit,
    /// The origin was asked, or another request's answer waited for.
    Forwarded,
    /// larder itself: static files, redirects, errors.
    Local,
}

impl Served {
    pub(crate) fn bytes_from(self) -> BytesFrom {
        match self {
            Self::Hit => BytesFrom::Store,
            Self::Forwarded => BytesFrom::Origin,
            Self::Local => BytesFrom::Own,
        }
    }
}

impl Label for Served {
    const NAME: &'static str = "served";
    const TOKENS: &'static [&'static str] = &["hit", "forwarded", "local"];

    fn index(&self) -> usize {
        *self as usize
    }
}

/// From where the bytes of a response came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BytesFrom {
    /// A store: hits.
    Store,
    /// An origin, for this request or for another one.
    Origin,
    /// larder itself.
    Own,
}

impl Label for BytesFrom {
    const NAME: &'static str = "from";
    const TOKENS: &'static [&'static str] = &["store", "origin", "own"];

    fn index(&self) -> usize {
        *self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_methods_share_one_value() {
        for (method, token) in
            [("GET", "GET"), ("PURGE", "PURGE"), ("get", "other"), ("X-1", "other"), ("other", "other")]
        {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(MethodLabel::from(&method).token(), token, "{method}");
        }
    }

    #[test]
    fn every_status_has_a_class() {
        for (status, token) in
            [(100, "1xx"), (206, "2xx"), (304, "3xx"), (499, "4xx"), (599, "5xx"), (999, "other")]
        {
            assert_eq!(CodeClass::from(StatusCode::from_u16(status).unwrap()).token(), token);
        }
    }

    #[test]
    fn served_tokens_follow_the_variants() {
        assert_eq!(
            [Served::Hit, Served::Forwarded, Served::Local].map(|s| s.token()),
            ["hit", "forwarded", "local"]
        );
    }
}
