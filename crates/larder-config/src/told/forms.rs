//! Secrets as they may stand elsewhere in a text, and a text without them.
//!
//! In: what is hidden at its place, and the document around it. Out: the forms that are hidden wherever they stand: the value, the part
//! behind a scheme such as `Bearer`, the value of each `NAME=VALUE` in it, and each as it is written in the file. What a name alone makes a
//! secret is hidden elsewhere where it is long, and neither a media type, nor a host of the config, nor a word of the schema.
//! A text is searched twice: what is made by the first search is hidden with its line by the second. So the time is linear in the text for
//! each form, and no form is left. Where there are too many forms, no line is shown.

use std::collections::HashSet;
use std::fmt;
use std::sync::LazyLock;

use super::hidden::{Hidden, MASK};
use crate::document::{Table, Value};
use crate::schema::Shape;
use crate::sections::all_sections;

/// So long is a secret that is hidden wherever its bytes stand.
const SURE_BYTES: usize = 8;
/// The same, where it is one by the sound of its name, or a part of one.
const SOUND_BYTES: usize = 12;
/// The most forms that are looked for.
const FORMS_MAX: usize = 4096;
/// The most bytes that are searched, over all forms.
const SEARCHED_MAX: usize = 1 << 29;

/// Secrets as they may stand somewhere. `Debug` hides them.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Forms(Vec<String>);

impl fmt::Debug for Forms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Forms(..)")
    }
}

impl Forms {
    /// The forms of what is hidden of `text`, of which `document` was made.
    pub(super) fn of(hidden: &[Hidden], text: &str, document: &Table) -> Self {
        let mut hosts = HashSet::new();
        add_hosts(document, &mut hosts);
        let is_common = |form: &str| {
            let form = form.to_ascii_lowercase();
            is_media_type(&form) || hosts.contains(host(&form))
        };
        let mut forms = Vec::new();
        for Hidden { range, forms: values, is_sure, .. } in hidden {
            let least = if *is_sure { SURE_BYTES } else { SOUND_BYTES };
            let whole = values.iter().map(String::as_str);
            forms.extend(
                whole.clone().filter(|value| value.len() >= least && (*is_sure || !is_common(value))),
            );
            let written = text.get(range.clone()).map(without_quotes).filter(|_| !values.is_empty());
            let more = written.into_iter().chain(whole.chain(written).flat_map(parts));
            forms.extend(more.filter(|form| form.len() >= SOUND_BYTES && !is_common(form)));
        }
        forms.retain(|form| !form.contains('\n') && !WORDS.contains(form.to_ascii_lowercase().as_str()));
        forms.sort_unstable();
        forms.dedup();
        Self(forms.into_iter().map(str::to_owned).collect())
    }

    /// `text` without any of them in it.
    pub(super) fn cut_out(&self, text: &str) -> String {
        if self.0.len() > FORMS_MAX || self.0.len().saturating_mul(text.len()) > SEARCHED_MAX {
            return without_lines(text, |_| true);
        }
        let Some(found) = self.found(text) else { return text.to_owned() };
        let mut out = String::with_capacity(text.len());
        let mut was_found = false;
        for (at, character) in text.char_indices() {
            let is_found = found.get(at) == Some(&true);
            match (is_found, was_found) {
                (false, _) => out.push(character),
                (true, false) => out.push_str(MASK),
                (true, true) => {}
            }
            was_found = is_found;
        }
        // With what stands around it, a mask may be another secret.
        match self.found(&out) {
            None => out,
            Some(found) => {
                without_lines(&out, |line| found.get(line).is_some_and(|line| line.contains(&true)))
            }
        }
    }

    /// Which bytes of `text` are one of them; `None` where no byte is.
    fn found(&self, text: &str) -> Option<Vec<bool>> {
        let mut found = Vec::new();
        for form in &self.0 {
            for (at, _) in text.match_indices(form.as_str()) {
                found.resize(text.len(), false);
                if let Some(bytes) = found.get_mut(at..at + form.len()) {
                    bytes.fill(true);
                }
            }
        }
        (!found.is_empty()).then_some(found)
    }
}

/// `text` with `***` for each line that is hidden and is not empty.
fn without_lines(text: &str, is_hidden: impl Fn(std::ops::Range<usize>) -> bool) -> String {
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        let is_hidden = !content.is_empty() && is_hidden(at..at + content.len());
        out.push_str(if is_hidden { MASK } else { content });
        out.push_str(line.get(content.len()..).unwrap_or_default());
        at += line.len();
    }
    out
}

/// What stands between the quotes of a literal.
fn without_quotes(literal: &str) -> &str {
    let inner = ["\"\"\"", "'''", "\"", "'"]
        .iter()
        .find_map(|quote| literal.strip_prefix(quote)?.strip_suffix(quote));
    inner.unwrap_or(literal)
}

/// What of a value may be the secret in it.
fn parts(value: &str) -> impl Iterator<Item = &str> {
    let is_scheme = |word: &str| {
        let word = word.strip_suffix(':').unwrap_or(word);
        !word.is_empty()
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let behind =
        value.split_once([' ', '\t']).filter(|(word, _)| is_scheme(word)).map(|(_, rest)| rest.trim());
    let named = value.split([' ', '\t', ';', ',']).filter_map(|part| part.split_once('='));
    behind.into_iter().chain(named.map(|(_, value)| value.trim_matches(['"', '\\'])))
}

fn is_media_type(lower: &str) -> bool {
    const TYPES: [&str; 10] =
        ["*", "application", "audio", "font", "image", "message", "model", "multipart", "text", "video"];
    let bare = lower.split_once(';').map_or(lower, |(bare, _)| bare);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".+-*".contains(&byte);
    bare.split_once('/').is_some_and(|(kind, part)| TYPES.contains(&kind) && part.bytes().all(is_plain))
}

/// Every name of a key and every word that may be a value.
static WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let mut words = HashSet::new();
    for key in all_sections().iter().flat_map(|section| &section.keys) {
        words.insert(key.name);
        add_words(&key.shape, &mut words);
    }
    words
});

fn add_words(shape: &Shape, out: &mut HashSet<&'static str>) {
    match shape {
        Shape::Words(words) => out.extend(*words),
        Shape::List(item) | Shape::Map(_, item) => add_words(item, out),
        Shape::AnyOf(shapes) => shapes.iter().for_each(|shape| add_words(shape, out)),
        _ => {}
    }
}

/// Hosts are values of these keys.
const HOST_KEYS: [&str; 5] = ["hosts", "host", "servers", "listen", "address"];

fn add_hosts(table: &Table, out: &mut HashSet<String>) {
    for entry in &table.entries {
        add_hosts_of(&entry.node.value, HOST_KEYS.contains(&entry.name.as_str()), out);
    }
}

fn add_hosts_of(value: &Value, are_hosts: bool, out: &mut HashSet<String>) {
    match value {
        Value::Text(text) if are_hosts => {
            out.insert(host(&text.to_ascii_lowercase()).to_owned());
        }
        Value::Table(table) => add_hosts(table, out),
        Value::List(items) => items.iter().for_each(|item| add_hosts_of(&item.value, are_hosts, out)),
        _ => {}
    }
}

/// A host without a scheme, a port, and the sign for all hosts below it.
fn host(lower: &str) -> &str {
    let host = lower.split_once("://").map_or(lower, |(_, host)| host).trim_end_matches('/');
    let host = host.strip_prefix("*.").unwrap_or(host);
    let port = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    port.map_or(host, |(host, _)| host)
}
