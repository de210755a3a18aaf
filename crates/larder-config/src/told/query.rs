//! A target without the secrets in its query.
//!
//! In: path and query of a request that larder makes of itself, and the names that a config calls secret. Out: the same with `***` in place
//! of the values of parameters with such names, or with names that sound so; and those values.

use super::hidden::{Hidden, MASK};
use super::sound::sounds_secret;
use crate::document::Position;
use crate::value::name::HiddenParameter;

/// What is not shown of the target that is written at `place`; `None` where all of it is.
pub(crate) fn hidden(place: &Position, target: &str, names: &[HiddenParameter]) -> Option<Hidden> {
    let (path, query) = target.split_once('?')?;
    let mut forms = Vec::new();
    let shown = query.split('&').map(|parameter| match secret(parameter, names) {
        Some((name, value)) => {
            forms.extend([value.to_owned(), decoded(value)]);
            format!("{name}={MASK}")
        }
        None => parameter.to_owned(),
    });
    let shown = format!("{path}?{}", shown.collect::<Vec<_>>().join("&"));
    if forms.is_empty() { None } else { Hidden::by_sound(place, shown, forms) }
}

/// A parameter, or several with other signs between them, at the first secret: what stands before it, and the rest.
fn secret<'p>(parameter: &'p str, names: &[HiddenParameter]) -> Option<(&'p str, &'p str)> {
    parameter.match_indices('=').find_map(|(equal, _)| {
        let (before, rest) = parameter.split_at_checked(equal)?;
        let name = decoded(before.rsplit([';', '?', '#', '=']).next().unwrap_or_default());
        let is_one = |name: &str| names.iter().any(|hidden| hidden.covers(name.trim()));
        let is_secret = sounds_secret(&name) || is_one(&name) || name.split(['[', ']']).any(is_one);
        is_secret.then_some((before, rest.get(1..)?))
    })
}

/// Percent-decoded; what is no escape stays.
fn decoded(text: &str) -> String {
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, after @ ..] = rest {
        let digits =
            after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&out).into_owned()
}
