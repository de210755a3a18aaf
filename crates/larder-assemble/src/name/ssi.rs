//! Variables of SSI: Apache's, and those of nginx that its SSI pages use.
//!
//! In: a name in any letter case. Out: the name in lower case, and what it stands for unless the template sets it.
//! Apache's names are about the page, also in what it includes: mod_include hands the page's environment on. nginx's `uri`, `args` and `arg_NAME`
//! are about the document in which they stand, as in its subrequests.
//! Deliberately absent: `$request_body`, `$remote_user` and all else of nginx's variables.

use http::HeaderName;

use super::field::field;

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SsiName {
    /// In lower case.
    pub(crate) text: Box<[u8]>,
    /// What it is unless it is set.
    pub(crate) known: Option<SsiKnown>,
}

/// What a request or a document knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SsiKnown {
    /// `$0` to `$9`.
    Capture(usize),
    /// Of the page, as what follows.
    DocumentUri,
    DocumentName,
    Query,
    QueryDecoded,
    /// Of the document.
    OwnUri,
    OwnQuery,
    Method,
    RequestUri,
    Host,
    /// Host and port: the field Host, which requests carry apart from the others.
    Authority,
    Protocol,
    Scheme,
    Client,
    LastModified,
    Date,
    Field(HeaderName),
    /// In lower case.
    Cookie(Box<[u8]>),
    /// In lower case.
    Argument(Box<[u8]>),
}

impl SsiName {
    /// Of any text.
    pub(crate) fn of(text: &[u8]) -> Self {
        let text: Box<[u8]> = text.to_ascii_lowercase().into();
        let known = known(&text);
        Self { text, known }
    }

    /// How long a name without braces is at the start of `text`.
    pub(crate) fn len_at(text: &[u8]) -> usize {
        match text.first() {
            Some(digit) if digit.is_ascii_digit() => 1,
            _ => text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count(),
        }
    }
}

fn known(name: &[u8]) -> Option<SsiKnown> {
    Some(match name {
        [digit @ b'0'..=b'9'] => SsiKnown::Capture(usize::from(digit - b'0')),
        b"document_uri" => SsiKnown::DocumentUri,
        b"uri" => SsiKnown::OwnUri,
        b"document_name" => SsiKnown::DocumentName,
        b"document_args" | b"query_string" => SsiKnown::Query,
        b"args" => SsiKnown::OwnQuery,
        b"query_string_unescaped" => SsiKnown::QueryDecoded,
        b"request_method" => SsiKnown::Method,
        b"request_uri" => SsiKnown::RequestUri,
        b"server_name" | b"host" => SsiKnown::Host,
        b"http_host" => SsiKnown::Authority,
        b"server_protocol" => SsiKnown::Protocol,
        b"request_scheme" | b"scheme" => SsiKnown::Scheme,
        b"remote_addr" => SsiKnown::Client,
        b"last_modified" => SsiKnown::LastModified,
        b"date_gmt" | b"date_local" => SsiKnown::Date,
        name => {
            match (name.strip_prefix(b"http_"), name.strip_prefix(b"cookie_"), name.strip_prefix(b"arg_")) {
                (Some(name), ..) => SsiKnown::Field(field(name)?),
                (_, Some(name), _) => SsiKnown::Cookie(name.into()),
                (.., Some(name)) => SsiKnown::Argument(name.into()),
                _ => return None,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_any_case_stand_for_what_they_are_in_nginx_and_apache() {
        let field = |name| Some(SsiKnown::Field(HeaderName::from_static(name)));
        for (name, expected) in [
            ("DOCUMENT_URI", Some(SsiKnown::DocumentUri)),
            ("uri", Some(SsiKnown::OwnUri)),
            ("Query_String", Some(SsiKnown::Query)),
            ("args", Some(SsiKnown::OwnQuery)),
            ("DATE_LOCAL", Some(SsiKnown::Date)),
            ("date_gmt", Some(SsiKnown::Date)),
            ("HTTP_HOST", Some(SsiKnown::Authority)),
            ("HTTP_ACCEPT_LANGUAGE", field("accept-language")),
            ("http_X_Forwarded_For", field("x-forwarded-for")),
            ("cookie_Session", Some(SsiKnown::Cookie(b"session"[..].into()))),
            ("arg_page", Some(SsiKnown::Argument(b"page"[..].into()))),
            ("7", Some(SsiKnown::Capture(7))),
            ("10", None),
            ("http_", None),
            ("http_a b", None),
            ("own", None),
            ("", None),
        ] {
            assert_eq!(SsiName::of(name.as_bytes()).known, expected, "{name}");
        }
    }

    #[test]
    fn a_name_without_braces_ends_where_no_letter_follows() {
        for (text, length) in [("a_1-b", 3), ("12", 1), ("", 0), ("-a", 0), ("a.b", 1)] {
            assert_eq!(SsiName::len_at(text.as_bytes()), length, "{text}");
        }
    }
}
