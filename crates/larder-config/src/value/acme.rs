//! What `[acme]` says of a CA and of who asks it: its directory, contacts, a profile, the name of an account.
//!
//! In: texts. Out: the same as values, held to RFC 8555. Deliberately absent: the CA itself. Whether it knows a profile or an account is
//! found out when it is asked.

use std::fmt;

use crate::document::{Node, Value};
use crate::reading::{At, Reading, nearest};
use crate::schema::{Setting, Shape, Text, TextSetting};

/// Let's Encrypt, as it publishes its directories.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";
const LETS_ENCRYPT_STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";
/// The CAs that have a word.
const WORDS: [&str; 2] = ["letsencrypt", "letsencrypt-staging"];
/// The longest text of any of these, in bytes.
const BYTES_MAX: usize = 1024;

/// A CA, by its directory (RFC 8555 7.1.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum AcmeDirectory {
    /// Let's Encrypt.
    #[default]
    LetsEncrypt,
    /// Its staging environment, whose certificates no browser trusts.
    LetsEncryptStaging,
    /// Another CA's, at this `https` URL.
    Own(String),
}

impl AcmeDirectory {
    /// Where it is.
    pub fn url(&self) -> &str {
        match self {
            Self::LetsEncrypt => LETS_ENCRYPT,
            Self::LetsEncryptStaging => LETS_ENCRYPT_STAGING,
            Self::Own(url) => url,
        }
    }

    /// Whether it is given as a URL.
    pub fn is_own(&self) -> bool {
        matches!(self, Self::Own(_))
    }

    fn parse(text: &str) -> Result<Self, Option<String>> {
        match text {
            "letsencrypt" => return Ok(Self::LetsEncrypt),
            "letsencrypt-staging" => return Ok(Self::LetsEncryptStaging),
            _ => {}
        }
        if text.starts_with("http://") {
            return Err(Some("ACME is spoken over TLS alone (RFC 8555 6.1): \"https://...\"".to_owned()));
        }
        if !text.starts_with("https://") {
            return Err(nearest(text, WORDS).map(|word| format!("did you mean \"{word}\"?")));
        }
        if text.contains('#') || text.len() > BYTES_MAX {
            return Err(None);
        }
        let url: http::Uri = text.parse().map_err(|_| None)?;
        match url.authority() {
            Some(authority) if authority.as_str().contains('@') => {
                Err(Some("who asks is said by `external_account`, not by the URL".to_owned()))
            }
            Some(authority) if !authority.host().is_empty() => Ok(Self::Own(text.to_owned())),
            _ => Err(None),
        }
    }
}

impl fmt::Display for AcmeDirectory {
    /// As it is written in the config.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LetsEncrypt => "letsencrypt",
            Self::LetsEncryptStaging => "letsencrypt-staging",
            Self::Own(url) => url,
        })
    }
}

const DIRECTORY_URL: Text = Text {
    noun: "the URL of an ACME directory",
    examples: r#""https://ca.example/acme/directory""#,
    about: "It begins with `https://`, as the CA gives it.",
    pattern: Some("^https://[^@# ]+$"),
};

impl Setting for AcmeDirectory {
    fn shape() -> Shape {
        Shape::AnyOf(vec![Shape::Words(&WORDS), Shape::Text(DIRECTORY_URL)])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let hint = match &node.value {
            Value::Text(text) => match Self::parse(text) {
                Ok(directory) => {
                    // A query may have a secret in it.
                    reading.targets.push((node.place.clone(), text.clone()));
                    return Some(directory);
                }
                Err(hint) => hint,
            },
            _ => None,
        };
        reading.refuse_value(node, at, Self::shape().expected(), hint);
        None
    }
}

/// A contact of an account: a `mailto:` URL with one address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AcmeContact(String);

impl AcmeContact {
    /// With its `mailto:`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TextSetting for AcmeContact {
    const TEXT: Text = Text {
        noun: "a contact",
        examples: r#""mailto:ops@example.com""#,
        about: "`mailto:` and one address, without anything behind it (RFC 8555 7.3).",
        pattern: Some("^mailto:[^@?, ]+@[^@?, ]+$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        let is_address = |address: &str| {
            let parts = address.split_once('@');
            let is_plain =
                |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b',' | b'<' | b'>' | b'"');
            address.len() <= BYTES_MAX
                && address.bytes().all(is_plain)
                && parts
                    .is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'))
        };
        match text.strip_prefix("mailto:") {
            Some(address) if is_address(address) => Ok(Self(text.to_owned())),
            Some(address) if address.contains(',') => Err(Some("one address each, in a list".to_owned())),
            Some(_) => Err(None),
            None if is_address(text) && !text.contains(':') => {
                Err(Some(format!("did you mean \"mailto:{text}\"?")))
            }
            None => Err(None),
        }
    }
}

/// The CA's name for a kind of certificate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AcmeProfile(String);

impl AcmeProfile {
    /// As the CA's directory has it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TextSetting for AcmeProfile {
    const TEXT: Text = Text {
        noun: "a profile",
        examples: r#""shortlived", "tlsserver""#,
        about: "As the CA's directory lists it under `meta`: visible ASCII, at most 64 bytes.",
        pattern: Some("^[!-~]{1,64}$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        let is_good = (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_good { Ok(Self(text.to_owned())) } else { Err(None) }
    }
}

/// What a CA calls an account.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AccountId(String);

impl AccountId {
    /// As the CA gave it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TextSetting for AccountId {
    const TEXT: Text = Text {
        noun: "the identifier of an account",
        examples: r#""kid-1""#,
        about: "As the CA gave it: visible ASCII, at most 1024 bytes.",
        pattern: Some("^[!-~]{1,1024}$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        let is_good =
            (1..=BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_good { Ok(Self(text.to_owned())) } else { Err(None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_a_word_or_an_https_url() {
        for (text, is_good) in [
            ("letsencrypt", true),
            ("letsencrypt-staging", true),
            ("https://ca.example/dir?tenant=1", true),
            ("https://127.0.0.1:14000/dir", true),
            ("https://[::1]:14000/dir", true),
            ("http://ca.example/dir", false),
            ("https://", false),
            ("https:///dir", false),
            ("https://me:secret@ca.example/dir", false),
            ("https://ca.example/dir#x", false),
            ("https://ca.example/a b", false),
            ("letsencript", false),
            ("", false),
        ] {
            let read = AcmeDirectory::parse(text);
            assert_eq!(read.is_ok(), is_good, "{text}: {read:?}");
            if let Ok(read) = read {
                assert_eq!(read.to_string(), text);
                assert!(read.url().starts_with("https://"));
            }
        }
    }

    #[test]
    fn a_contact_is_one_address() {
        for (text, expected) in [
            ("mailto:a@b.example", Ok(())),
            ("a@b.example", Err(Some("did you mean \"mailto:a@b.example\"?"))),
            ("mailto:a@b.example,c@d.example", Err(Some("one address each, in a list"))),
            ("mailto:a@b.example?subject=x", Err(None)),
            ("mailto:b.example", Err(None)),
            ("mailto:a@", Err(None)),
            ("mailto:a@b@c", Err(None)),
            ("tel:1", Err(None)),
            ("", Err(None)),
        ] {
            let read = AcmeContact::from_text(text).map(drop);
            assert_eq!(read, expected.map_err(|hint| hint.map(str::to_owned)), "{text}");
        }
    }

    #[test]
    fn names_of_profiles_and_accounts_are_visible_and_short() {
        assert!(AcmeProfile::from_text("shortlived").is_ok() && AccountId::from_text("kid-1").is_ok());
        for bad in ["", "a b", "\u{e9}", "a\n"] {
            assert!(AcmeProfile::from_text(bad).is_err() && AccountId::from_text(bad).is_err(), "{bad:?}");
        }
        assert!(AcmeProfile::from_text(&"a".repeat(65)).is_err());
        assert!(AccountId::from_text(&"a".repeat(1025)).is_err());
    }
}
