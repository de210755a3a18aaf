//! Vary and the request fields that it names: a stored response is selected exactly where the secondary keys are
//! equal, content codings aside, and preferences are equal exactly where they say the same.
//!
//! The first line of an input is the Vary. Each other line begins with a letter and a colon. `l` is Accept-Language, `e`
//! Accept-Encoding and `f` an unregistered field: small letters for the request that made the response, capitals for the
//! request that asks. `c` is the response's Content-Language.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use larder_cache::{Codings, Selecting, VaryNames};
use larder_http::fields::preference::{MEMBERS_MAX, Preferences};
use larder_http::fields::vary::{NAMES_MAX, Vary};

const LINES_MAX: usize = 16;
const FOO: HeaderName = HeaderName::from_static("foo");

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let mut lines = input.split(|byte| *byte == b'\n').take(LINES_MAX);
    let vary = response(lines.next().unwrap_or_default());
    let (mut made, mut asked, mut language) = (HeaderMap::new(), HeaderMap::new(), None);
    for line in lines {
        let [letter, b':', value @ ..] = line else { continue };
        let Ok(value) = HeaderValue::from_bytes(value.trim_ascii()) else { continue };
        match letter {
            b'l' => made.append(header::ACCEPT_LANGUAGE, value),
            b'L' => asked.append(header::ACCEPT_LANGUAGE, value),
            b'e' => made.append(header::ACCEPT_ENCODING, value),
            b'E' => asked.append(header::ACCEPT_ENCODING, value),
            b'f' => made.append(FOO, value),
            b'F' => asked.append(FOO, value),
            b'c' => language.replace(value).is_some(),
            _ => continue,
        };
    }
    let fixed = response(b"Accept-Language, Accept-Encoding, Foo");
    for vary in [vary, fixed] {
        if let Some(names) = names(&vary) {
            selected_where_keys_are_equal(&names, &made, &asked, language.as_ref());
        }
    }
    for name in [header::ACCEPT_LANGUAGE, header::ACCEPT_ENCODING] {
        preferences(&made, &asked, &name);
    }
}

fn response(vary: &[u8]) -> HeaderMap {
    HeaderMap::from_iter(HeaderValue::from_bytes(vary).ok().map(|value| (header::VARY, value)))
}

/// The names, which have to be sorted, each once and bounded.
fn names(response: &HeaderMap) -> Option<VaryNames> {
    let names = VaryNames::of(response);
    assert_eq!(names.is_none(), Vary::read(response) == Vary::Any);
    let names = names?;
    assert!(names.names().len() <= NAMES_MAX);
    assert!(names.names().is_sorted_by(|a, b| a.as_str() < b.as_str()), "{:?}", names.names());
    Some(names)
}

fn selected_where_keys_are_equal(
    names: &VaryNames,
    made: &HeaderMap,
    asked: &HeaderMap,
    language: Option<&HeaderValue>,
) {
    // A word that is no registered coding leaves nothing but equal values.
    let word = HeaderMap::from_iter([(header::CONTENT_ENCODING, HeaderValue::from_static("word"))]);
    let word = Codings::of(&word);
    let selecting = Selecting::new(names.clone(), made, None, word);
    let equal = names.secondary(made) == names.secondary(asked);
    assert!(selecting.selects(made), "the request that made it");
    assert_eq!(selecting.selects(asked), equal, "{made:?} {asked:?}");
    assert_eq!(Selecting::new(names.clone(), asked, None, word).selects(made), equal, "there and back");
    assert_eq!(*selecting.key(), names.secondary(made));

    let plain = Selecting::new(names.clone(), made, None, Codings::default());
    assert!(plain.selects(made));
    if plain.selects(asked) && !equal {
        let (mut made, mut asked) = (made.clone(), asked.clone());
        made.remove(header::ACCEPT_ENCODING);
        asked.remove(header::ACCEPT_ENCODING);
        assert_eq!(names.secondary(&made), names.secondary(&asked), "only the codings may differ");
    }

    let by_language = Selecting::new(names.clone(), made, language, word);
    assert!(by_language.selects(made));
    assert!(by_language.selects(asked) || !equal, "a language only adds requests");
    if by_language.selects(asked) && !equal {
        let language = language.expect("nothing else can add a request");
        let wanted = Preferences::read(asked, &header::ACCEPT_LANGUAGE);
        let wanted = wanted.as_ref().and_then(Preferences::preferred).expect("one language is preferred");
        assert!(wanted.eq_ignore_ascii_case(language.as_bytes()));
        assert!(names.names().contains(&header::ACCEPT_LANGUAGE));
        let (mut made, mut asked) = (made.clone(), asked.clone());
        made.remove(header::ACCEPT_LANGUAGE);
        asked.remove(header::ACCEPT_LANGUAGE);
        assert_eq!(names.secondary(&made), names.secondary(&asked), "only the language may differ");
    }
}

fn preferences(made: &HeaderMap, asked: &HeaderMap, name: &HeaderName) {
    let Some(one) = Preferences::read(made, name) else { return };
    let members: Vec<(&[u8], u16)> = one.iter().collect();
    assert!(members.len() <= MEMBERS_MAX);
    assert!(members.iter().all(|(member, weight)| !member.is_empty() && *weight <= 1000));
    if let Some(preferred) = one.preferred() {
        assert_ne!(preferred, b"*");
        assert!(members.iter().any(|(member, weight)| *member == preferred && *weight > 0));
    }
    // Backwards, in capitals, each on a line of its own and with all decimals.
    let mut written = HeaderMap::new();
    for (member, weight) in members.iter().rev() {
        let weight = format!(";q={}.{:03}", weight / 1000, weight % 1000);
        let line = [&member.to_ascii_uppercase(), weight.as_bytes()].concat();
        written.append(name, HeaderValue::from_bytes(&line).expect("a token and digits"));
    }
    if !members.is_empty() {
        assert!(Preferences::read(&written, name).is_some_and(|again| again == one), "{members:?}");
    }
    let other = Preferences::read(asked, name);
    let same = other.as_ref().is_some_and(|other| one == *other);
    let names = names(&response(name.as_str().as_bytes())).expect("a name is a list of names");
    assert_eq!(names.secondary(made) == names.secondary(asked), same, "the same preferences, the same key");
    if let Some(other) = other {
        assert_eq!(other == one, same);
        assert!(!same || one.preferred().is_some() == other.preferred().is_some());
    }
}
