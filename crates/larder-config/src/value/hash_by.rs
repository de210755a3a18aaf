//! What a server is chosen by where the same requests shall reach the same server: a part of the request.

use std::fmt;

use http::HeaderName;

use crate::reading::nearest;
use crate::schema::{Text, TextSetting};
use crate::value::name::{CookieName, ParameterName};

/// The part of a request that chooses its server. Prints as it is written in the config.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum HashBy {
    /// Host, path and query as they go to the origin.
    #[default]
    Url,
    /// The path alone.
    Path,
    /// The host alone.
    Host,
    /// The client's address.
    Client,
    /// The value of this field.
    Field(HeaderName),
    /// The value of this cookie.
    Cookie(CookieName),
    /// The value of this parameter.
    Query(ParameterName),
}

const WORDS: [&str; 7] = ["url", "path", "host", "client", "header:", "cookie:", "query:"];

impl TextSetting for HashBy {
    const TEXT: Text = Text {
        noun: "a part of the request",
        examples: r#""url", "path", "host", "client", "header:X-Tenant", "cookie:cart", "query:id""#,
        about: "The whole URL, its path, the host, the client's address, or the value of a field, a cookie or a parameter. \
                Requests without that field, cookie or parameter have nothing to be told apart by: each takes any server.",
        pattern: Some("^(url|path|host|client|(header|cookie|query):.+)$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        let unnamed = |kind: &str| Some(format!("write its name behind the colon: \"{kind}:NAME\""));
        match text.split_once(':') {
            None => match text {
                "url" => Ok(Self::Url),
                "path" => Ok(Self::Path),
                "host" => Ok(Self::Host),
                "client" => Ok(Self::Client),
                "header" | "cookie" | "query" => Err(unnamed(text)),
                other => Err(nearest(other, WORDS).map(|word| match word.strip_suffix(':') {
                    Some(kind) => format!("did you mean \"{kind}:NAME\"?"),
                    None => format!("did you mean \"{word}\"?"),
                })),
            },
            Some((kind @ ("header" | "cookie" | "query"), "")) => Err(unnamed(kind)),
            Some(("header", name)) if name.eq_ignore_ascii_case("host") => {
                Err(Some("did you mean \"host\"?".to_owned()))
            }
            Some(("header", name)) => HeaderName::from_text(name).map(Self::Field),
            Some(("cookie", name)) => CookieName::from_text(name).map(Self::Cookie),
            Some(("query", name)) if name.ends_with('*') => {
                Err(Some("one parameter, by its whole name".to_owned()))
            }
            Some(("query", name)) => ParameterName::from_text(name).map(Self::Query),
            Some((kind, name)) => {
                let kinds = ["header", "cookie", "query"];
                Err(nearest(kind, kinds).map(|near| {
                    format!("did you mean \"{near}:{}\"?", crate::document::source::shorten(name))
                }))
            }
        }
    }
}

impl fmt::Display for HashBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url => f.write_str("url"),
            Self::Path => f.write_str("path"),
            Self::Host => f.write_str("host"),
            Self::Client => f.write_str("client"),
            Self::Field(name) => write!(f, "header:{name}"),
            Self::Cookie(name) => write!(f, "cookie:{name}"),
            Self::Query(name) => write!(f, "query:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_a_word_or_a_kind_with_a_name() {
        for (text, printed) in [
            ("url", "url"),
            ("path", "path"),
            ("host", "host"),
            ("client", "client"),
            ("header:X-Tenant", "header:x-tenant"),
            ("cookie:cart", "cookie:cart"),
            ("query:id", "query:id"),
            ("query:a:b", "query:a:b"),
        ] {
            let read = HashBy::from_text(text).map(|part| part.to_string());
            assert_eq!(read, Ok(printed.to_owned()), "{text}");
        }
        for (text, hint) in [
            ("", None),
            ("urls", Some("did you mean \"url\"?")),
            ("header", Some("write its name behind the colon: \"header:NAME\"")),
            ("cookie:", Some("write its name behind the colon: \"cookie:NAME\"")),
            ("cookies:a", Some("did you mean \"cookie:a\"?")),
            ("header:Host", Some("did you mean \"host\"?")),
            ("header:a b", None),
            (
                "header:Connection",
                Some("it belongs to the connection: larder consumes it and writes its own"),
            ),
            ("query:utm_*", Some("one parameter, by its whole name")),
            ("query:a&b", Some("a name as it stands in the query, escaped")),
            ("body:a", None),
        ] {
            assert_eq!(HashBy::from_text(text), Err(hint.map(str::to_owned)), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_read_prints_and_reads_back(text in "(url|client|header:|cookie:|query:)[!-~]{0,8}") {
            if let Ok(part) = HashBy::from_text(&text) {
                proptest::prop_assert_eq!(HashBy::from_text(&part.to_string()), Ok(part));
            }
        }
    }
}
