//! Magento 2, and the extension of elgentos.
//!
//! In: PURGE at the cache's own name, with an expression for tags in `X-Magento-Tags-Pattern`. `X-Pool` has one for the pool that a
//! response says it is of, which is a tag here if the site names that field in `tags`. Its `^` and `$` are the ends of one tag, since
//! expressions see all tags of a response as one text. `.*` names everything. The extension adds `X-Magento-Purge-Soft`.

use http::HeaderName;
use larder_cache::purge::{Expression, PatternText};

use super::super::manner::{Claim, Manner};
use super::super::names::Names;
use super::super::request::PurgeRequest;

const TAGS: HeaderName = HeaderName::from_static("x-magento-tags-pattern");
const POOL: HeaderName = HeaderName::from_static("x-pool");

/// Reads the fields of this dialect.
pub(super) fn read(request: &PurgeRequest<'_>, names: &mut Names) -> Option<Claim> {
    request.values(&TAGS).for_each(|value| names.matching_tags(value));
    for value in request.values(&POOL).filter(|value| !value.is_empty()) {
        let tags = names.expression(value).map(|pool| Expression { text: of_one_tag(&pool.text), ..pool });
        names.pattern(PatternText { tags, ..PatternText::default() });
    }
    [TAGS, POOL].into_iter().any(|name| request.has(&name)).then_some(Claim {
        manner: Manner::Purged,
        nameless: "X-Magento-Tags-Pattern or X-Pool header required",
    })
}

/// Has the ends of an expression match at the ends of any tag.
fn of_one_tag(text: &str) -> Box<str> {
    let (begins, rest) = text.strip_prefix('^').map_or(("", text), |rest| ("(^|,)", rest));
    let is_end = rest.ends_with('$') && !rest.ends_with("\\$");
    let (rest, ends) = if is_end { (&rest[..rest.len() - 1], "(,|$)") } else { (rest, "") };
    format!("{begins}{rest}{ends}").into()
}
