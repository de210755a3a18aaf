//! Which of several stored responses a request selects (RFC 9111 4.1).
//!
//! In: the Vary of a response and the request that made it. Out: [`Selecting`], kept with the stored response, which
//! tells for a later request whether it would have made the same one, without allocating. And [`VaryNames`], which
//! can be remembered for a URI and turns a request into a [`SecondaryKey`] before anything is fetched. Values are
//! compared after joining lines and dropping blanks around commas outside of quoted strings. Two fields are known
//! better: of Accept-Language and Accept-Encoding neither the order of members, nor letter case, nor the spelling of
//! a weight means anything. Absent matches absent only.
//! Where Accept-Encoding is all that differs, the content coding decides (`fit`): a response with a registered coding
//! answers whoever takes that coding and nobody else, also where Vary does not name the field.
//! As an option, a response that says its Content-Language is also selected by requests that prefer just that language
//! to all others, whatever else they would take. RFC 9111 4.1 does not go so far: the origin might have more to choose
//! from than it had then.

use std::hash::Hash;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use larder_http::fields::preference::Preferences;
use larder_http::fields::vary::Vary;

use crate::codec::{HeadError, Reading, push};
use crate::coding::{Codings, Taken};
use crate::policy::CachePolicy;

mod asker;
mod fit;

pub use fit::Fit;

/// Tells the dictionary that a client has for content codings that need one (RFC 9842 2.2).
const AVAILABLE_DICTIONARY: HeaderName = HeaderName::from_static("available-dictionary");

/// The request fields that a response names in Vary: sorted, each once, never `*`. Clones share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct VaryNames(Arc<[HeaderName]>);

impl VaryNames {
    /// Reads Vary; `None` where it is `*` or not understood, so that no later request can match.
    pub fn of(response: &HeaderMap) -> Option<Self> {
        match Vary::read(response) {
            Vary::Any => None,
            Vary::Names(names) => Some(Self(names.into())),
        }
    }

    /// The names, and those by which a response with these codings varies whether its Vary says so or not.
    fn with_codings(self, codings: Codings) -> Self {
        let own = [header::ACCEPT_ENCODING, AVAILABLE_DICTIONARY];
        let holds = [codings.has_registered(), codings.needs_dictionary()];
        let missing = own.into_iter().zip(holds).filter(|(name, holds)| *holds && !self.0.contains(name));
        let missing: Vec<HeaderName> = missing.map(|(name, _)| name).collect();
        if missing.is_empty() {
            return self;
        }
        let mut names: Vec<HeaderName> = self.0.iter().cloned().chain(missing).collect();
        names.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        Self(names.into())
    }

    /// The names.
    pub fn names(&self) -> &[HeaderName] {
        &self.0
    }

    /// Whether two requests may well be given the same response: they have the same values, or differ in an
    /// Accept-Encoding that takes gzip in both.
    pub fn may_share(&self, one: &HeaderMap, other: &HeaderMap) -> bool {
        let value = |request: &HeaderMap, name: &HeaderName| {
            let mut value = Vec::new();
            write_value(request, name, |part| value.extend_from_slice(part));
            value
        };
        self.names().iter().all(|name| {
            let is_alike = || *name == header::ACCEPT_ENCODING && Taken::by(one).is_like(&Taken::by(other));
            value(one, name) == value(other, name) || is_alike()
        })
    }

    /// Whether the response does not vary.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values that `request` has for these names, as one key.
    pub fn secondary(&self, request: &HeaderMap) -> SecondaryKey {
        let mut key = Vec::new();
        for name in self.names() {
            write_value(request, name, |part| key.extend_from_slice(part));
        }
        SecondaryKey(key.into())
    }

    /// Bytes in memory, not counting the struct itself.
    pub fn memory_bytes(&self) -> usize {
        let long_names: usize = self.0.iter().map(|name| name.as_str().len()).sum();
        size_of_val::<[HeaderName]>(&self.0) + long_names + 2 * size_of::<usize>()
    }
}

/// The values of a request's selecting fields. Equal keys of the same [`VaryNames`] select the same response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SecondaryKey(Box<[u8]>);

impl SecondaryKey {
    /// All values, one after the other; the same in every process.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Ends a value. Nothing else that is written contains it.
const END: &[u8] = &[0];
/// Stands for a field that the request does not have. No field value contains it, nor 2 and 3.
const ABSENT: &[u8] = &[1];
/// Begins the members of a field whose order means nothing, so that no value that could not be read as one equals it.
const PREFERENCES: &[u8] = &[2];

/// Hands the normalised value of `name` to `part`, piece by piece, and [`END`]. Up to 16 members nothing is allocated.
fn write_value(request: &HeaderMap, name: &HeaderName, mut part: impl FnMut(&[u8])) {
    if let Some(preferences) = preferences(request, name) {
        write_preferences(&preferences, part);
        return;
    }
    let mut lines = request.get_all(name).iter();
    match lines.next() {
        None => part(ABSENT),
        Some(first) => {
            let mut comma = false;
            for line in std::iter::once(first).chain(lines) {
                for member in members(line.as_bytes()) {
                    if std::mem::replace(&mut comma, true) {
                        part(b",");
                    }
                    part(member);
                }
            }
        }
    }
    part(END);
}

/// Whether the field is a list of preferences.
fn is_preference(name: &HeaderName) -> bool {
    matches!(*name, header::ACCEPT_LANGUAGE | header::ACCEPT_ENCODING)
}

/// The members of such a field, where the request has it and it is well formed.
fn preferences<'a>(request: &'a HeaderMap, name: &HeaderName) -> Option<Preferences<'a>> {
    is_preference(name).then(|| Preferences::read(request, name))?
}

/// The value of `name` byte for byte, where it stands on one line or nowhere.
fn spelling<'a>(request: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut lines = request.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (None, _) => Some(ABSENT),
        (Some(value), None) => Some(value.as_bytes()),
        (Some(_), Some(_)) => None,
    }
}

fn write_preferences(preferences: &Preferences<'_>, mut part: impl FnMut(&[u8])) {
    part(PREFERENCES);
    for (member, weight) in preferences.iter() {
        let mut lower = [0; 32];
        for piece in member.chunks(lower.len()) {
            for (to, from) in lower.iter_mut().zip(piece) {
                *to = from.to_ascii_lowercase();
            }
            part(lower.get(..piece.len()).unwrap_or_default());
        }
        // `;` ends a member, which contains none; four digits end the weight. None of them is END.
        let digit = |power: u16| b'0' + u8::try_from(weight / power % 10).unwrap_or_default();
        part(&[b';', digit(1_000), digit(100), digit(10), digit(1)]);
    }
    part(END);
}

/// The members of a line, split at commas outside of quoted strings, without the blanks around them. An empty line is
/// one empty member.
fn members(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    line.split(move |byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' => return !quoted,
            _ => {}
        }
        false
    })
    .map(<[u8]>::trim_ascii)
}

/// The selecting fields of a stored response, with the values of the request that made it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selecting {
    names: VaryNames,
    key: SecondaryKey,
    /// How the preferences among the fields were spelled. Most requests spell them like the one before, and need not be
    /// taken apart.
    spelled: Box<[u8]>,
    /// The language of the response, where those who prefer it may have it.
    language: Option<Box<[u8]>>,
    /// The codings of its content.
    codings: Codings,
}

impl Selecting {
    /// What `request` has for `names`, and for those that `codings`, the response's own, add. With `content_language`,
    /// the response's own, requests that prefer that language select it too, if Accept-Language is among the names and
    /// Content-Language is a single tag.
    pub fn new(
        names: VaryNames,
        request: &HeaderMap,
        content_language: Option<&HeaderValue>,
        codings: Codings,
    ) -> Self {
        let names = names.with_codings(codings);
        let key = names.secondary(request);
        let language = content_language
            .map(|value| value.as_bytes().trim_ascii())
            .filter(|tag| is_language(tag) && names.names().contains(&header::ACCEPT_LANGUAGE));
        let mut spelled = Vec::new();
        for name in names.names().iter().filter(|name| is_preference(name)) {
            // On several lines: what no request spells.
            spelled.extend_from_slice(spelling(request, name).unwrap_or(PREFERENCES));
            spelled.extend_from_slice(END);
        }
        Self { names, key, spelled: spelled.into(), language: language.map(Into::into), codings }
    }

    /// Whether `request` selects the response: it has the same values, or where Accept-Encoding is all that differs, the
    /// codings of the response suit it. A response that does not vary is selected by every request.
    #[inline]
    pub fn selects(&self, request: &HeaderMap) -> bool {
        self.fit(request).is_some()
    }

    /// Whether `request` has the same value for each name but Accept-Encoding; and if so, whether it has for that.
    /// `None` where another value differs.
    fn compare(&self, request: &HeaderMap) -> Option<bool> {
        let (mut rest, mut spelled) = (Some(&*self.key.0), &*self.spelled);
        let mut same_codings = true;
        for name in self.names.names() {
            let before = rest;
            if is_preference(name) {
                let (as_before, behind) = first_value(spelled);
                spelled = behind;
                if spelling(request, name) == Some(as_before) {
                    rest = before.map(|key| first_value(key).1);
                    continue;
                }
            }
            write_value(request, name, |part| rest = rest.and_then(|rest| rest.strip_prefix(part)));
            if rest.is_none() {
                let is_codings = *name == header::ACCEPT_ENCODING;
                same_codings &= !is_codings;
                let passes = is_codings || self.is_in_preferred_language(request, name);
                rest = before.filter(|_| passes).map(|key| first_value(key).1);
            }
            rest?;
        }
        rest.is_some_and(<[u8]>::is_empty).then_some(same_codings)
    }

    /// Whether `name` is Accept-Language, and prefers the language of the response to all others.
    fn is_in_preferred_language(&self, request: &HeaderMap, name: &HeaderName) -> bool {
        let Some(language) = self.language.as_deref().filter(|_| *name == header::ACCEPT_LANGUAGE) else {
            return false;
        };
        let preferences = preferences(request, name);
        let preferred = preferences.and_then(|preferences| preferences.preferred());
        preferred.is_some_and(|preferred| preferred.eq_ignore_ascii_case(language))
    }

    /// The same, but for the requests that `before` answers, where that is the same response and `request`, which
    /// confirmed it, selects it: whoever could use it can use it again.
    pub(crate) fn renewing(self, before: &Self, request: &HeaderMap) -> Self {
        let is_same = self.names == before.names && self.codings == before.codings && before.selects(request);
        match is_same {
            true => Self { key: before.key.clone(), spelled: before.spelled.clone(), ..self },
            false => self,
        }
    }

    /// Sets Accept-Encoding as the request had it that made the response, where that selects it.
    pub fn ask_for_codings(&self, request: &mut HeaderMap) {
        let names = self.names.names().iter().filter(|name| is_preference(name));
        let mut rest = &*self.spelled;
        for name in names {
            let (value, behind) = first_value(rest);
            rest = behind;
            match (name, value) {
                (&header::ACCEPT_ENCODING, ABSENT) => drop(request.remove(name)),
                (&header::ACCEPT_ENCODING, value) if value != PREFERENCES => {
                    if let Ok(value) = HeaderValue::from_bytes(value) {
                        request.insert(name, value);
                    }
                }
                _ => {}
            }
        }
    }

    /// The names.
    pub fn names(&self) -> &VaryNames {
        &self.names
    }

    /// The values.
    pub fn key(&self) -> &SecondaryKey {
        &self.key
    }

    /// What the request that made the response had for each name, in words for people: normalised, escaped where it is not
    /// printable ASCII, and `None` where it had no such field.
    pub fn told(&self) -> Vec<(HeaderName, Option<String>)> {
        let mut rest = &*self.key.0;
        let value = |name: &HeaderName| {
            let (value, behind) = first_value(rest);
            rest = behind;
            (name.clone(), value_told(value))
        };
        self.names.names().iter().map(value).collect()
    }

    /// Writes it behind what is in `out`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let names: Vec<&str> = self.names.names().iter().map(HeaderName::as_str).collect();
        push(out, names.join(",").as_bytes());
        push(out, &self.key.0);
        push(out, &self.spelled);
        // No tag is empty.
        push(out, self.language.as_deref().unwrap_or_default());
    }

    /// Reads what [`Self::write`] wrote, of a response with these codings.
    pub(crate) fn read(from: &mut Reading<'_>, codings: Codings) -> Result<Self, HeadError> {
        let names = from.block()?.split(|byte| *byte == b',').filter(|name| !name.is_empty());
        let names: Result<Arc<[HeaderName]>, _> = names.map(HeaderName::from_bytes).collect();
        Ok(Self {
            names: VaryNames(names.map_err(|_| HeadError::Malformed)?),
            key: SecondaryKey(from.block()?.into()),
            spelled: from.block()?.into(),
            language: Some(from.block()?).filter(|tag| !tag.is_empty()).map(Into::into),
            codings,
        })
    }

    /// Bytes in memory, not counting the struct itself.
    pub fn memory_bytes(&self) -> usize {
        let language = self.language.as_ref().map_or(0, |tag| tag.len());
        self.names.memory_bytes() + self.key.0.len() + self.spelled.len() + language
    }
}

/// The first of the values in `written`, and what follows it.
fn first_value(written: &[u8]) -> (&[u8], &[u8]) {
    let end = written.iter().position(|byte| *byte == 0).unwrap_or(written.len());
    let (value, rest) = written.split_at(end);
    (value, rest.strip_prefix(END).unwrap_or_default())
}

/// The members, with their weights in thousandths, of a value that [`write_value`] wrote as preferences.
fn written_preferences(value: &[u8]) -> Option<impl Iterator<Item = (&[u8], u16)>> {
    let mut rest = value.strip_prefix(PREFERENCES)?;
    Some(std::iter::from_fn(move || {
        let (member, behind) = rest.split_at(rest.iter().position(|byte| *byte == b';')?);
        let (weight, behind) = behind.split_at_checked(5).unwrap_or((behind, &[]));
        rest = behind;
        let digits = weight.get(1..).unwrap_or_default().iter();
        Some((member, digits.fold(0, |sum, digit| sum * 10 + u16::from(digit.wrapping_sub(b'0') % 10))))
    }))
}

/// A value as it was written by [`write_value`], without its end.
fn value_told(value: &[u8]) -> Option<String> {
    if value == ABSENT {
        return None;
    }
    let Some(members) = written_preferences(value) else {
        return Some(value.escape_ascii().to_string());
    };
    let told = members.map(|(member, weight)| match weight {
        1000 => member.escape_ascii().to_string(),
        weight => format!("{};q=0.{weight:03}", member.escape_ascii()),
    });
    Some(told.collect::<Vec<_>>().join(", "))
}

/// Whether `text` is one language tag, as far as its characters say (RFC 5646 2.1).
fn is_language(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

/// The request fields that select the response; `None` where nothing can select it again.
pub(crate) fn selecting_names(fields: &HeaderMap, policy: &CachePolicy) -> Option<VaryNames> {
    let names = VaryNames::of(fields);
    if names.is_some() || !policy.ignore.vary {
        return names;
    }
    let is_name = |member: &&[u8]| *member != b"*";
    let lines = fields.get_all(header::VARY).iter().map(|line| {
        let members = line.as_bytes().split(|b| *b == b',').map(<[u8]>::trim_ascii);
        members.filter(is_name).collect::<Vec<_>>().join(&b","[..])
    });
    let mut starless = HeaderMap::new();
    for line in lines {
        starless.append(header::VARY, HeaderValue::from_bytes(&line).ok()?);
    }
    VaryNames::of(&starless)
}

#[cfg(test)]
mod tests;
