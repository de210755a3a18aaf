//! Where an include takes its fragment from: a reference that is resolved when the template is compiled, or one with
//! variables, which is resolved for each page.
//!
//! In: the text of `src`, `alt`, `virtual` or `file`, and the URI of the document. Out: a reference, or the reason why there is
//! none. A reference with variables stays on the document's own site, unless the template itself writes a site before its
//! first variable or takes it from `$(HTTP_HOST)`. Values from elsewhere are escaped, and cannot add a segment of dots.

use larder_http::target::reference::{DocumentUri, Reference, ReferenceError, dots, resolve, resolve_path};

use crate::composed::{Composed, Lookup, Part};
use crate::escape;
use crate::name::{Variable, esi, ssi};
use crate::reason::IncludeFailure;
use crate::value::{VALUE_BYTES_MAX, Value};

/// Where a fragment comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The same on each page.
    Fixed(Result<Reference, IncludeFailure>),
    /// Depends on the page.
    Composed(Composed, Form),
}

/// What a reference may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A path on the document's own site.
    Path,
    /// It may name a site.
    Site,
    /// Apache's `file`: beneath the document's own folder.
    Beneath,
}

/// Dots of values are written so until it is known whether they make a segment. No reference holds this byte.
const DOT: u8 = 0;

impl Source {
    /// What a reference in a template asks for.
    pub(crate) fn of(text: Composed, form: Form, document: &DocumentUri) -> Self {
        match text.fixed() {
            Some(fixed) => Self::Fixed(form.resolve(document, &fixed)),
            None if form == Form::Site => match with_variables(&text) {
                Ok(form) => Self::Composed(text, form),
                Err(reason) => Self::Fixed(Err(reason)),
            },
            None => Self::Composed(text, form),
        }
    }

    /// The reference on this page.
    pub(crate) fn resolve(
        &self,
        document: &DocumentUri,
        lookup: &mut impl Lookup,
    ) -> Result<Reference, IncludeFailure> {
        match self {
            Self::Fixed(reference) => reference.clone(),
            Self::Composed(text, form) => form.resolve(document, &written(text, lookup)?),
        }
    }

    /// About how many bytes it takes.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Fixed(reference) => {
                reference.as_ref().map_or(0, |reference| reference.target.as_bytes().len())
            }
            Self::Composed(text, _) => text.weight(),
        }
    }
}

impl Form {
    fn resolve(self, document: &DocumentUri, text: &[u8]) -> Result<Reference, IncludeFailure> {
        let own = |target| Reference { site: None, target };
        match self {
            Self::Site => resolve(document, text),
            Self::Path => resolve_path(document, text).map(own),
            Self::Beneath => {
                let path = text.split(|byte| *byte == b'?').next().unwrap_or_default();
                if path.starts_with(b"/")
                    || path.split(|byte| *byte == b'/').any(|segment| dots(segment) == 2)
                {
                    return Err(IncludeFailure::Climbing);
                }
                resolve_path(document, text).map(own)
            }
        }
        .map_err(|error| match error {
            ReferenceError::Host => IncludeFailure::Host,
            ReferenceError::Climbing => IncludeFailure::Climbing,
            ReferenceError::Malformed => IncludeFailure::Url,
        })
    }
}

/// Whether a reference with variables names a site, or the reason why it may not: a variable other than `$(HTTP_HOST)` would
/// choose it.
fn with_variables(text: &Composed) -> Result<Form, IncludeFailure> {
    let (mut before, mut is_all) = (Vec::new(), true);
    for part in &text.parts {
        match part {
            Part::Own(own) => before.extend_from_slice(own),
            Part::Variable(Variable::Esi(name)) if name.known == esi::EsiKnown::Host => {
                before.extend_from_slice(b"host")
            }
            Part::Variable(_) => {
                is_all = false;
                break;
            }
        }
    }
    let before = before.trim_ascii_start();
    let colon = before.iter().position(|byte| matches!(byte, b':' | b'/' | b'?'));
    let after_scheme = match colon {
        Some(at) if before.get(at) == Some(&b':') => before.get(at + 1..).unwrap_or_default(),
        _ => before,
    };
    match after_scheme.strip_prefix(b"//") {
        Some(rest) if rest.iter().any(|byte| matches!(byte, b'/' | b'?')) => Ok(Form::Site),
        Some(_) if is_all => Ok(Form::Site),
        Some(_) => Err(IncludeFailure::Host),
        None if after_scheme.len() < before.len() => Err(IncludeFailure::Host),
        None => Ok(Form::Path),
    }
}

/// The text of a reference with its values in it.
fn written(text: &Composed, lookup: &mut impl Lookup) -> Result<Vec<u8>, IncludeFailure> {
    let mut out = Vec::new();
    for part in &text.parts {
        match part {
            Part::Own(own) => out.extend(own.iter().copied().filter(|byte| *byte != DOT)),
            Part::Variable(variable) => {
                lookup.spend(1);
                let value = lookup.look_up(variable).unwrap_or_default();
                let in_query = out.contains(&b'?');
                if stays(variable, in_query) {
                    out.extend(value.text().iter().copied().filter(|byte| *byte != DOT));
                } else {
                    add(&value, &mut out);
                }
            }
        }
        if out.len() > VALUE_BYTES_MAX {
            return Err(IncludeFailure::Url);
        }
    }
    let path = out.split(|byte| *byte == b'?').next().unwrap_or_default();
    let climbs = |segment: &[u8]| {
        segment.contains(&DOT) && {
            let plain: Vec<u8> = segment.iter().map(|byte| if *byte == DOT { b'.' } else { *byte }).collect();
            dots(&plain) > 0
        }
    };
    if path.split(|byte| *byte == b'/').any(climbs) {
        return Err(IncludeFailure::Climbing);
    }
    out.iter_mut().filter(|byte| **byte == DOT).for_each(|byte| *byte = b'.');
    Ok(out)
}

/// Whether a value is written as it came: a whole query in a query, and the host.
fn stays(variable: &Variable, in_query: bool) -> bool {
    match variable {
        Variable::Ssi(ssi::SsiName {
            known: Some(ssi::SsiKnown::Query | ssi::SsiKnown::OwnQuery), ..
        }) => in_query,
        Variable::Ssi(_) => false,
        Variable::Esi(name) => match name.known {
            esi::EsiKnown::Query => in_query,
            esi::EsiKnown::Host => true,
            _ => false,
        },
    }
}

fn add(value: &Value, out: &mut Vec<u8>) {
    for (stretch, is_foreign) in value.stretches() {
        let from = out.len();
        if is_foreign {
            escape::component(stretch, out);
            out.iter_mut().skip(from).filter(|byte| **byte == b'.').for_each(|byte| *byte = DOT);
        } else {
            out.extend(stretch.iter().copied().filter(|byte| *byte != DOT));
        }
    }
}
