//! Which Host an origin is asked with: the client's, the upstream's own name, or one that is given.

use larder_http::authority::Authority;

use crate::schema::{Text, TextSetting};
use crate::value::probe::ProbeHost;

/// The value of Host, or `:authority`, in requests to an origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SentHost {
    /// What the client asked for.
    #[default]
    Client,
    /// The name of the server in the config.
    Upstream,
    /// This name.
    Name(Authority),
}

impl TextSetting for SentHost {
    const TEXT: Text = Text {
        noun: "\"client\", \"upstream\" or a host",
        examples: r#""upstream", "app.example:8080""#,
        about: "`\"client\"`, `\"upstream\"`, or a host name or IP address, IPv6 in brackets, with a port where one belongs \
                into the field Host.",
        pattern: Some("^[^*/@ ]+$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        match text {
            "client" => Ok(Self::Client),
            "upstream" => Ok(Self::Upstream),
            name => ProbeHost::from_text(name).map(|ProbeHost(name)| Self::Name(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sent_host_is_one_of_two_words_or_a_name() {
        for (text, expected) in [
            ("client", Ok("client")),
            ("upstream", Ok("upstream")),
            ("App.Example:8080", Ok("app.example:8080")),
            ("[::1]:81", Ok("[::1]:81")),
            ("http://app.example", Err(())),
            ("", Err(())),
        ] {
            let read = SentHost::from_text(text).map_err(|_| ());
            let told = read.map(|host| match host {
                SentHost::Client => "client".to_owned(),
                SentHost::Upstream => "upstream".to_owned(),
                SentHost::Name(name) => name.to_string(),
            });
            let told = told.as_deref().map_err(drop);
            assert_eq!(told, expected, "{text:?}");
        }
    }
}
