//! What a page that is put together says to caches behind larder (RFC 9111 5.2).
//!
//! In: what each part says, the template first, and what values and conditions of the page read of the request. Out:
//! [`PageControl`]: Cache-Control, Age, Date, and names to add to Vary, in place of what the template says for itself alone.
//! The strictest part decides. A page that not all may have is `private`, and `no-cache` too, since no field tells its
//! visitors apart. The lifetime of any other page ends with the part that ends first. Age and Date are of that part, or
//! caches would count an older Date. All ages grow alike, so that these fields are the same for as long as the page is.
//! Two lifetimes may end with two parts: the one for shared caches is counted by itself.
//! Deliberately absent: fields of single parts, and every other field of the page.

mod ground;
mod said;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use larder_http::fields::cache_control::Argument;

pub use ground::{PageGround, page_ground};
use said::{LifetimeFor, added_to_vary, directives};
pub use said::{PageSaid, PartSaid};

/// What a page says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageControl {
    /// Cache-Control, and Date where it is another part's than the template's.
    pub fields: HeaderMap,
    /// Names to add to the template's Vary.
    pub vary: Vec<HeaderName>,
    /// Age.
    pub age_seconds: Option<u64>,
    /// The least of the parts' time left, as larder counts it.
    pub ttl_seconds: Option<i64>,
}

/// What the page says. `template_fields` are the final fields of the template, of which `said.parts` has the first: with its own
/// Cache-Control.
pub fn page_control(said: &PageSaid<'_>, template_fields: &HeaderMap) -> PageControl {
    let vary = added_to_vary(said);
    let ground = ground::ground_of(said, template_fields, vary.is_none());
    let Some((template, ground)) = said.parts.first().zip(ground) else { return PageControl::default() };
    let mut page = PageControl {
        fields: HeaderMap::new(),
        age_seconds: template.age_seconds,
        ttl_seconds: said.parts.iter().filter_map(|part| part.ttl_seconds).min(),
        vary: vary.unwrap_or_default(),
    };
    let word = match ground {
        PageGround::NoStore(_) => "no-store",
        PageGround::Open | PageGround::Private(_) | PageGround::Personal | PageGround::ManyNames => {
            "private, no-cache"
        }
        PageGround::NoCache(_) | PageGround::Failed => "no-cache",
        PageGround::Silent => return page,
        PageGround::EndsFirst(first) => {
            end_with_the_first(&mut page, first, (template, said.parts), template_fields);
            return page;
        }
    };
    page.fields.insert(header::CACHE_CONTROL, HeaderValue::from_static(word));
    page
}

/// The template's directives with the lifetimes that end with the part that ends first, and the Age and Date of that part.
fn end_with_the_first(
    page: &mut PageControl,
    first: usize,
    (template, parts): (&PartSaid, &[PartSaid]),
    template_fields: &HeaderMap,
) {
    // To all others the template gives no lifetime, and so no part does.
    let is_for_all = template.says != LifetimeFor::SharedCaches;
    let for_all = |part: &PartSaid| part.left(part.lifetime_seconds);
    let for_shared = |part: &PartSaid| part.left(part.shared_seconds);
    let first = parts.get(first).unwrap_or(template);
    // All lifetimes are counted from the age of this part.
    let least = |left: &dyn Fn(&PartSaid) -> i64| {
        let left = parts.iter().map(left).min().unwrap_or_default();
        first.age().saturating_add(left).max(0)
    };
    let (lifetime, shared) = (least(&for_all), least(&for_shared));
    let says_shared = matches!(first.says, LifetimeFor::SharedCaches | LifetimeFor::Both);
    let mut value = other_directives(template_fields);
    let mut add = |name: &str, seconds: i64| {
        if !value.is_empty() {
            value.extend_from_slice(b", ");
        }
        value.extend_from_slice(name.as_bytes());
        value.extend_from_slice(seconds.to_string().as_bytes());
    };
    if is_for_all {
        add("max-age=", lifetime);
    }
    if !is_for_all || says_shared || shared != lifetime {
        add("s-maxage=", shared);
    }
    let value = HeaderValue::try_from(value).unwrap_or_else(|_| HeaderValue::from_static("no-cache"));
    page.fields.insert(header::CACHE_CONTROL, value);
    if !std::ptr::eq(first, template) {
        page.age_seconds = first.age_seconds;
        if template_fields.get(header::DATE) != Some(&first.date) {
            page.fields.insert(header::DATE, first.date.clone());
        }
    }
}

/// Directives that a page says anew, or not at all: what is made of parts may be another page at any time.
const SAID_ANEW: [&str; 3] = ["max-age", "s-maxage", "immutable"];

/// All other directives of the template that are well formed, as it has them.
fn other_directives(fields: &HeaderMap) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, argument) in directives(fields) {
        let is_anew = SAID_ANEW.iter().any(|anew| name.eq_ignore_ascii_case(anew.as_bytes()));
        if is_anew || matches!(argument, Argument::Malformed(_)) {
            continue;
        }
        if !out.is_empty() {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(name);
        match argument {
            Argument::None | Argument::Malformed(_) => {}
            Argument::Token(token) => [&b"="[..], token].iter().for_each(|text| out.extend_from_slice(text)),
            Argument::Quoted(quoted) => {
                [&b"=\""[..], quoted, b"\""].iter().for_each(|text| out.extend_from_slice(text));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
