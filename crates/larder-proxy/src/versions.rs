//! Versions that an application keeps in Redis, as part of a request's key: what has another version lies under another key.
//!
//! In: a request, and the names that its rule makes of it. Out: the versions, as they go into the key. They are known without asking nearly
//! always (`larder_remote::versions`), and read within a bound where they are not.
//! Where they cannot be had, or are not there, the request has the key of the last ones that were known. Nothing of that is used before
//! the origin has confirmed it. So the application decides, and what it has confirmed stands in for it when it fails.
//! Deliberately absent: what is stored under a version that is over. It ages out of its store like all that is not used.

use std::sync::Arc;

use larder_http::message::RequestHead;
use larder_remote::versions::{Version, VersionName, VersionReading, Versions};
use larder_store::key::{VERSIONS_END, VERSIONS_RULE_BYTES};
use larder_store::template::KeyTemplate;
use smallvec::SmallVec;

/// Between two versions of one request.
const BETWEEN: u8 = b'.';

/// How the name of a version is made of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionTemplate {
    /// Of the key, or of the hash.
    pub key: KeyTemplate,
    /// Of the field, where it is a hash.
    pub field: Option<KeyTemplate>,
}

/// The versions of a rule.
#[derive(Debug)]
pub struct VersionRule {
    versions: Arc<Versions>,
    /// One or more.
    names: Vec<VersionTemplate>,
    /// What tells these names apart from those of another config.
    identity: [u8; VERSIONS_RULE_BYTES],
    /// Whether one that is missing is begun once the origin has given something that is stored.
    begins: bool,
}

/// Versions as they go into a key.
type KeyText = SmallVec<[u8; 32]>;

/// Why versions are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotKnown {
    /// They cannot be had at this moment, or the request makes no name of one.
    Unknown,
    /// One of them is not there.
    Absent,
}

impl NotKnown {
    /// The word of `Cache-Status` and the log.
    pub(crate) const fn token(self) -> &'static str {
        match self {
            Self::Unknown => "version-unknown",
            Self::Absent => "version-absent",
        }
    }

    /// The same for people.
    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::Unknown => {
                "The versions of its rule cannot be had: the origin is asked, whatever was stored before."
            }
            Self::Absent => {
                "The application has set no version for it: the origin is asked, whatever was stored before."
            }
        }
    }
}

/// The versions of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestVersions {
    /// Those by which it is keyed.
    text: KeyText,
    /// Why these are only the last that were known.
    pub(crate) not_known: Option<NotKnown>,
}

impl RequestVersions {
    /// What the key gets.
    pub(crate) fn key_text(&self) -> &[u8] {
        &self.text
    }

    /// As people read them; empty where none was ever known.
    pub(crate) fn told(&self) -> String {
        let text = self.text.split(|byte| VERSIONS_END.contains(byte)).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }
}

impl VersionRule {
    /// Of these names, one or more, which `versions` reads. Where it `begins` them, one that is missing is begun once the origin has given a
    /// 200 that may be stored.
    pub fn new(versions: Arc<Versions>, names: Vec<VersionTemplate>, begins: bool) -> Self {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, format!("{names:?}").as_bytes());
        let identity = digest.as_ref().first_chunk().copied().unwrap_or_default();
        Self { versions, names, identity, begins }
    }

    fn names(&self, head: &RequestHead) -> Option<SmallVec<[VersionName; 1]>> {
        let name = |template: &VersionTemplate| {
            let key = template.key.of_request(None, head)?;
            let field = match &template.field {
                Some(field) => Some(field.of_request(None, head)?),
                None => None,
            };
            VersionName::new(&key, field.as_deref())
        };
        self.names.iter().map(name).collect()
    }

    /// The versions of a request, where all are known.
    pub(crate) fn known(&self, head: &RequestHead) -> Option<RequestVersions> {
        let mut text = Joined::default();
        for name in self.names(head)? {
            self.versions.known(&name, |version| text.push(version))?;
        }
        Some(text.known(self))
    }

    /// The same, with those that are not known read.
    ///
    /// # Cancel safety
    /// What comes is for nobody.
    pub(crate) async fn read(&self, head: &RequestHead) -> RequestVersions {
        let Some(names) = self.names(head) else {
            let none = Joined::default().known(self);
            return RequestVersions { not_known: Some(NotKnown::Unknown), ..none };
        };
        let readings = self.versions.read(names.to_vec()).await;
        let (mut text, mut not_known) = (Joined::default(), None);
        for (name, reading) in names.iter().zip(readings) {
            let why = match reading {
                VersionReading::Version(version) => {
                    text.push(&version);
                    continue;
                }
                VersionReading::Absent => NotKnown::Absent,
                VersionReading::Unknown => NotKnown::Unknown,
            };
            not_known = not_known.filter(|other| *other == NotKnown::Unknown).or(Some(why));
            text.push_last(self.versions.last(name));
        }
        RequestVersions { not_known, ..text.known(self) }
    }

    /// The same without asking the server.
    pub(crate) fn unread(&self, head: &RequestHead) -> RequestVersions {
        self.known(head)
            .unwrap_or_else(|| RequestVersions { not_known: Some(NotKnown::Unknown), ..self.last(head) })
    }

    /// The last versions that were known, without waiting: for a look at stored responses.
    pub(crate) fn last(&self, head: &RequestHead) -> RequestVersions {
        let mut text = Joined::default();
        for name in self.names(head).unwrap_or_default() {
            text.push_last(self.versions.last(&name));
        }
        text.known(self)
    }

    /// Whether it begins versions that are missing.
    pub(crate) fn begins(&self) -> bool {
        self.begins
    }

    /// Begins those that are not there, which the origin's answer to `head` is of.
    pub(crate) fn begin(&self, head: &RequestHead) {
        // One that is there stays as it is.
        self.names(head).into_iter().flatten().for_each(|name| self.versions.begin(name));
    }
}

/// Versions one behind the other.
#[derive(Default)]
struct Joined {
    text: KeyText,
    /// Of each version, its length and its time.
    marks: SmallVec<[(usize, u64); 1]>,
    /// Some version has the byte that stands between them.
    has_between: bool,
}

impl Joined {
    fn push(&mut self, version: &Version) {
        self.add(version.text.as_bytes(), version.time);
    }

    fn push_last(&mut self, version: Option<Version>) {
        match version {
            Some(version) => self.push(&version),
            None => self.add(b"", 0),
        }
    }

    fn add(&mut self, text: &[u8], time: u64) {
        if !self.marks.is_empty() {
            self.text.push(BETWEEN);
        }
        self.text.extend_from_slice(text);
        self.has_between |= text.contains(&BETWEEN);
        self.marks.push((text.len(), time));
    }

    fn known(self, rule: &VersionRule) -> RequestVersions {
        RequestVersions { text: self.of_rule(&rule.identity), not_known: None }
    }

    fn of_rule(self, identity: &[u8; VERSIONS_RULE_BYTES]) -> KeyText {
        let Self { mut text, marks, has_between } = self;
        text.extend_from_slice(VERSIONS_END);
        text.extend_from_slice(identity);
        let is_ambiguous = has_between && marks.len() > 1;
        if is_ambiguous || marks.iter().any(|(_, time)| *time > 0) {
            for (length, time) in marks {
                text.extend_from_slice(&(length as u64).to_le_bytes());
                text.extend_from_slice(&time.to_le_bytes());
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(versions: &[(&str, u64)]) -> KeyText {
        let mut joined = Joined::default();
        for (text, time) in versions {
            joined.push(&Version { text: (*text).into(), time: *time });
        }
        joined.of_rule(b"identity")
    }

    #[test]
    fn versions_are_joined_by_dots_and_no_two_lists_look_alike() {
        assert_eq!(joined(&[("7", 0)]).as_slice(), b"7\0identity");
        assert_eq!(joined(&[("7", 0), ("a", 0)]).as_slice(), b"7.a\0identity");
        assert_eq!(joined(&[("1.5", 0)]).as_slice(), b"1.5\0identity");
        let all = [
            joined(&[("7", 0), ("1", 0), ("2", 0)]),
            joined(&[("7.1", 0), ("2", 0)]),
            joined(&[("7", 0), ("1.2", 0)]),
            joined(&[("7.1.2", 0)]),
            joined(&[("7.1.2", 1)]),
            joined(&[("7.1.2", 2)]),
            joined(&[("7.1", 1), ("2", 0)]),
            joined(&[("7.1", 0), ("2", 1)]),
        ];
        for (index, one) in all.iter().enumerate() {
            let told = RequestVersions { text: one.clone(), not_known: None }.told();
            assert_eq!(told, "7.1.2");
            // The first and the fourth have different rules, and a rule has a number of versions.
            let others =
                all.iter().enumerate().filter(|(other, _)| *other != index && *other != 3 && index != 3);
            assert!(others.into_iter().all(|(_, other)| other != one), "{index}");
        }
        let mut last = Joined::default();
        last.push_last(None);
        last.push_last(Some(Version { text: "3".into(), time: 0 }));
        assert_eq!(last.of_rule(b"identity").as_slice(), b".3\0identity");
    }
}
