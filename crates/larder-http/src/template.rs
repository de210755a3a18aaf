//! The languages of templates: responses in which a surrogate puts other responses.
//!
//! In: nothing. Out: which language a response is written in, and the token by which it says so.
//! Deliberately absent: the decision whether a response is a template, and what its directives mean (larder-assemble).

/// The language of a template. A template has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// Server-side includes, as nginx and Apache read them.
    Ssi,
    /// Edge Side Includes 1.0.
    Esi,
}

impl Language {
    /// The name in a config and in logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ssi => "ssi",
            Self::Esi => "esi",
        }
    }

    /// The capability token of the Edge Architecture note.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Ssi => "SSI/1.0",
            Self::Esi => "ESI/1.0",
        }
    }
}
