//! The keys under which a sample is counted.
//!
//! In: a sample. Out: a call for each table that it belongs to, with a key and how much it adds. Keys are made in room that is used for one
//! sample after the other, and cut at [`KEY_BYTES_MAX`]. A key of two parts has a space between them: its first part is a word without one.
//! What a key holds is as redacted as the sample is.

use super::kind::TableKind;
use crate::filter::{Facts, TextField};
use crate::watch::sample::Sample;

/// Longer keys are cut.
pub(super) const KEY_BYTES_MAX: usize = 600;
/// Of one query, so many names of parameters are counted.
const PARAMETERS_MAX: usize = 32;
/// The word of a request whose host no site has.
const UNKNOWN_HOST: &str = "unknown-host";

/// Room for keys.
#[derive(Debug, Default)]
pub(super) struct KeyRoom {
    url: String,
    pair: String,
}

/// At most so many bytes of a text, up to the end of a character.
fn cut(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default()
}

/// Appends what the key has room for.
fn push(key: &mut String, text: &str) {
    key.push_str(cut(text, KEY_BYTES_MAX.saturating_sub(key.len())));
}

fn pair<'a>(key: &'a mut String, word: &str, text: &str) -> &'a str {
    key.clear();
    for part in [word, " ", text] {
        push(key, part);
    }
    key
}

impl KeyRoom {
    /// Calls `add` with each table, key and amount.
    pub(super) fn each(&mut self, sample: &Sample, mut add: impl FnMut(TableKind, &str, f64)) {
        let Self { url, pair: key } = self;
        let head = sample.head();
        let weight = head.weight.count() as f64;
        write_url(sample, url);
        if !url.is_empty() {
            add(TableKind::Urls, url, weight);
            if head.body_bytes > 0 {
                add(TableKind::Bytes, url, weight * head.body_bytes as f64);
            }
            if let Some(reason) = head.forward {
                add(TableKind::Misses, pair(key, reason.token(), url), weight);
            }
            if let Some(before) = head.before {
                add(TableKind::Before, pair(key, before, url), weight);
            }
        }
        if let Some((word, server)) = error(sample) {
            add(TableKind::Errors, pair(key, word, server), weight);
        }
        if head.detail == Some(UNKNOWN_HOST)
            && let Some(host) = sample.text(TextField::Host, &mut String::new())
        {
            add(TableKind::Hosts, cut(host, KEY_BYTES_MAX), weight);
        }
        if head.forward.is_some()
            && let Some(query) = sample.text(TextField::Query, &mut String::new())
        {
            let names = query.split('&').map(|one| one.split_once('=').map_or(one, |(name, _)| name));
            let names = names.map(|name| cut(name, KEY_BYTES_MAX)).filter(|name| !name.is_empty());
            names.take(PARAMETERS_MAX).for_each(|name| add(TableKind::Parameters, name, weight));
        }
    }
}

fn write_url(sample: &Sample, url: &mut String) {
    url.clear();
    let mut none = String::new();
    let Some(path) = sample.text(TextField::Path, &mut none) else { return };
    push(url, sample.head().scheme.as_str());
    push(url, "://");
    let mut none = String::new();
    push(url, sample.text(TextField::Host, &mut none).unwrap_or_default());
    push(url, path);
    let mut none = String::new();
    if let Some(query) = sample.text(TextField::Query, &mut none) {
        push(url, "?");
        push(url, query);
    }
}

/// Why no server of an origin answered, with what was asked: the server, or the origin where no server was reached. What larder refused by
/// itself concerns no server.
fn error(sample: &Sample) -> Option<(&str, &str)> {
    let head = sample.head();
    if let Some(fetched) = head.fetched.as_deref()
        && let Some(word) = fetched.error
    {
        return Some((word, fetched.server.as_deref().unwrap_or(&fetched.origin)));
    }
    let has_answer = head.result.is_hit() || head.fetched.as_ref().is_some_and(|it| it.status.is_some());
    let is_error = head.status.is_client_error() || head.status.is_server_error();
    head.detail.filter(|_| is_error && !has_answer).map(|word| (word, ""))
}
