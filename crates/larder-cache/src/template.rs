//! Which responses are templates, and in which language (Edge Architecture 1.0, ESI 1.0).
//!
//! In: a response's status and fields as its origin sent them, and what the rule says. Out: the language, which is decided
//! once, when the response arrives, and stays with it. A response says by the directive `content` of Surrogate-Control that
//! it is a template; a rule can say it of all responses of some media types. The content is never looked at: either of the
//! two is consent enough.
//! Surrogate-Control is read here also where the rule does not let it speak about lifetimes.
//! Deliberately absent: what a template means, and its content coding.

use http::{HeaderMap, StatusCode, header};
use larder_http::fields::surrogate;
use larder_http::template::Language;

use crate::policy::CachePolicy;
pub use crate::policy::{Assemble, TemplatePolicy};

/// The language of a response that was received under this policy; `None` where it is no template. Never one of a 206 or
/// 304, of an interim response, or of a status without content.
pub fn language(policy: &CachePolicy, status: StatusCode, fields: &HeaderMap) -> Option<Language> {
    let has_content = !status.is_informational()
        && !matches!(
            status,
            StatusCode::NO_CONTENT
                | StatusCode::RESET_CONTENT
                | StatusCode::PARTIAL_CONTENT
                | StatusCode::NOT_MODIFIED
        );
    has_content.then(|| would_be(policy, fields)).flatten()
}

/// The language of the whole of which a 206 with these fields is a part: of a template the whole is needed.
pub fn would_be(policy: &CachePolicy, fields: &HeaderMap) -> Option<Language> {
    match policy.templates.assemble {
        Assemble::Off => None,
        Assemble::Auto => surrogate::content(fields),
        Assemble::Language(language) => {
            let of_type = || has_type(&policy.templates.types, fields).then_some(language);
            surrogate::content(fields).or_else(of_type)
        }
    }
}

/// Whether Content-Type, without its parameters, is one of `types`.
fn has_type(types: &[String], fields: &HeaderMap) -> bool {
    let Some(value) = fields.get(header::CONTENT_TYPE) else { return false };
    let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    types.iter().any(|known| essence.eq_ignore_ascii_case(known.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::fields;
    use crate::policy::Controls;
    use Language::{Esi, Ssi};

    fn policy(assemble: Assemble) -> CachePolicy {
        let types = vec!["text/html".to_owned(), "application/xhtml+xml".to_owned()];
        let templates = TemplatePolicy { assemble, types, ..TemplatePolicy::default() };
        CachePolicy { templates, ..CachePolicy::default() }
    }

    const ESI: (&str, &str) = ("surrogate-control", "content=\"ESI/1.0\"");
    const SSI: (&str, &str) = ("surrogate-control", "max-age=9, content=\"SSI/1.0\"");
    const HTML: (&str, &str) = ("content-type", "text/html");

    #[test]
    fn a_template_says_so_or_has_a_type_of_the_rule() {
        const AUTO: Assemble = Assemble::Auto;
        const BY_SSI: Assemble = Assemble::Language(Ssi);
        const BY_ESI: Assemble = Assemble::Language(Esi);
        for (assemble, said, expected) in [
            (AUTO, &[][..], None),
            (AUTO, &[HTML], None),
            (AUTO, &[ESI], Some(Esi)),
            (AUTO, &[SSI, ("content-type", "image/png")], Some(Ssi)),
            (AUTO, &[("surrogate-control", "content=\"ESI/1.0\";other")], None),
            (BY_SSI, &[], None),
            (BY_SSI, &[HTML], Some(Ssi)),
            (BY_ESI, &[HTML], Some(Esi)),
            (BY_SSI, &[("content-type", "Text/HTML ; charset=utf-8")], Some(Ssi)),
            (BY_SSI, &[("content-type", "application/xhtml+xml;x=y")], Some(Ssi)),
            (BY_SSI, &[("content-type", "text/htmlx")], None),
            (BY_SSI, &[("content-type", "text/plain; x=text/html")], None),
            (BY_SSI, &[("content-type", "")], None),
            (BY_SSI, &[HTML, ("surrogate-control", "content=\"X/1.0\"")], Some(Ssi)),
            (BY_SSI, &[HTML, ESI], Some(Esi)),
            (BY_ESI, &[HTML, SSI], Some(Ssi)),
            (BY_ESI, &[ESI, ("content-type", "text/xml")], Some(Esi)),
            (Assemble::Off, &[HTML, ESI], None),
        ] {
            let (policy, said) = (policy(assemble), fields(said));
            assert_eq!(language(&policy, StatusCode::OK, &said), expected, "{assemble:?} {said:?}");
            assert_eq!(would_be(&policy, &said), expected, "{assemble:?} {said:?}");
        }
    }

    #[test]
    fn any_final_status_with_content_will_do() {
        for (status, is_one) in [
            (103, false),
            (200, true),
            (201, true),
            (203, true),
            (204, false),
            (205, false),
            (206, false),
            (301, true),
            (304, false),
            (404, true),
            (503, true),
        ] {
            let status = StatusCode::from_u16(status).unwrap_or_default();
            let found = language(&policy(Assemble::Auto), status, &fields(&[ESI]));
            assert_eq!(found, is_one.then_some(Esi), "{status}");
        }
    }

    #[test]
    fn it_says_so_also_where_surrogate_control_gives_no_lifetime() {
        let controls = Controls { surrogate_control: false, ..Controls::default() };
        let deaf = CachePolicy { controls, ..policy(Assemble::Auto) };
        assert_eq!(language(&deaf, StatusCode::OK, &fields(&[ESI])), Some(Esi));
    }
}
