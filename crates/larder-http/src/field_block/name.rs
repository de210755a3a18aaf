//! The name of a field in HTTP/2 and HTTP/3, where pseudo fields travel among the others.
//!
//! In: the octets of a name. Out: a [`Name`], or `None` for what no message may carry (RFC 9113 8.2.1 and 8.3).
//! Deliberately absent: which pseudo fields a message needs, their order, and fields of a connection.

use http::HeaderName;

/// A pseudo field (RFC 9113 8.3, RFC 8441).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pseudo {
    /// `:method`
    Method,
    /// `:scheme`
    Scheme,
    /// `:authority`
    Authority,
    /// `:path`
    Path,
    /// `:protocol`
    Protocol,
    /// `:status`
    Status,
}

/// The name of any field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Name {
    /// One with a colon in front.
    Pseudo(Pseudo),
    /// Any other.
    Regular(HeaderName),
}

impl Pseudo {
    /// The name with its colon.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Method => ":method",
            Self::Scheme => ":scheme",
            Self::Authority => ":authority",
            Self::Path => ":path",
            Self::Protocol => ":protocol",
            Self::Status => ":status",
        }
    }

    /// The pseudo field of this name.
    pub const fn of(name: &[u8]) -> Option<Self> {
        match name {
            b":method" => Some(Self::Method),
            b":scheme" => Some(Self::Scheme),
            b":authority" => Some(Self::Authority),
            b":path" => Some(Self::Path),
            b":protocol" => Some(Self::Protocol),
            b":status" => Some(Self::Status),
            _ => None,
        }
    }
}

impl Name {
    /// The name as it is written.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Pseudo(pseudo) => pseudo.as_str(),
            Self::Regular(name) => name.as_str(),
        }
    }

    /// The name of these octets; `None` for upper case, for what is no token, and for an unknown pseudo field.
    pub fn parse(octets: &[u8]) -> Option<Self> {
        match octets.first() {
            Some(b':') => Pseudo::of(octets).map(Self::Pseudo),
            _ => HeaderName::from_lowercase(octets).ok().map(Self::Regular),
        }
    }

    /// The name of a static table's row.
    pub(super) const fn of_row(name: &'static str) -> Self {
        match Pseudo::of(name.as_bytes()) {
            Some(pseudo) => Self::Pseudo(pseudo),
            None => Self::Regular(HeaderName::from_static(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_message_may_carry() {
        for name in ["", ":", ":unknown", ":Method", "Accept", "a b", "a:", "ä"] {
            assert_eq!(Name::parse(name.as_bytes()), None, "{name}");
        }
        assert_eq!(Name::parse(b":path"), Some(Name::Pseudo(Pseudo::Path)));
        assert_eq!(Name::parse(b"x-a").unwrap().as_str(), "x-a");
    }
}
