//! Why nothing of a fragment goes into a page, and what is tried in its place, in sentences.
//!
//! In: an include with what is around it, and the settings of its rule. Out: reasons in the order in which a page tries them. The
//! words of failures are those of the metric and the log.

use larder_assemble::{Alternative, IncludeFailure, LevelKind, Outline, OutlinedInclude};
use larder_http::template::Language;

use crate::explain::reason::{CONFIGURATION, Reason};
use crate::settings::FragmentSettings;

const ESI_ALT: &str = "ESI 1.0 3.1";
const ESI_TRY: &str = "ESI 1.0 3.4";
const SSI: &str = "nginx ngx_http_ssi_module, Apache mod_include";

/// Why nothing of a fragment goes in.
pub(super) fn failure(of: IncludeFailure) -> Reason {
    let sentence = match of {
        IncludeFailure::Redirect => "It is a redirect, which is not followed.",
        IncludeFailure::Status => "It is an error: no content of one goes into a page.",
        IncludeFailure::Origin => "Its origin gives no answer.",
        IncludeFailure::Broken => "Its content ended too early.",
        IncludeFailure::Timeout => "It does not come within the time of one fragment.",
        IncludeFailure::PageTimeout => "It does not come within the time of the page.",
        IncludeFailure::TooLarge => "It is larger than what a variable or a page takes.",
        IncludeFailure::Coding => "Its content coding cannot be decoded.",
        IncludeFailure::Invalid => "It is a template with problems, and its rule says strict.",
        IncludeFailure::Host => {
            "Its site may not be asked: it is not the page's own, and hosts of fragments does not name it, or there is no such site, or it has other rules for the certificates of clients."
        }
        IncludeFailure::Climbing => "Its path climbs above the root.",
        IncludeFailure::Url => "It is not a reference.",
        IncludeFailure::Loop => "It is the template itself, or one of those that it stands in.",
        IncludeFailure::Depth => "It is deeper than depth of fragments permits.",
        IncludeFailure::Count => "There are more includes than count of fragments permits.",
        IncludeFailure::Budget => "The page has done all the work that one page may do.",
    };
    Reason::new(of.as_str(), sentence, CONFIGURATION)
}

/// What surrounds an include beyond its own template.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings<'a> {
    pub(super) language: Language,
    /// An attempt of a template that this one stands in.
    pub(super) is_attempted_outside: bool,
    pub(super) settings: &'a FragmentSettings,
}

/// What is tried in the place of an include that fails, in this order.
pub(super) fn on_failure(
    include: &OutlinedInclude<'_>,
    outline: &Outline<'_>,
    around: &Surroundings<'_>,
) -> Vec<Reason> {
    let mut tried = Vec::new();
    tried.extend(include.alternative().map(|alternative| told_alternative(alternative, around.language)));
    tried.push(match around.language {
        Language::Esi => last_of_esi(include, outline, around),
        Language::Ssi => last_of_ssi(include, around),
    });
    tried
}

fn told_alternative(of: Alternative<'_>, language: Language) -> Reason {
    let (word, section) = match language {
        Language::Esi => ("alt", ESI_ALT),
        Language::Ssi => ("onerror", SSI),
    };
    let sentence = match of {
        Alternative::Fixed(reference) => {
            let site = reference.site.as_ref();
            let site = site.map(|(scheme, site)| format!("{}://{}", scheme.as_str(), site.as_str()));
            format!("{}{} is asked for.", site.unwrap_or_default(), reference.target)
        }
        Alternative::Failed(reason) => {
            format!("{word} names nothing that may be asked for: {}.", reason.as_str())
        }
        Alternative::Composed => format!("What {word} names on this page is asked for."),
    };
    Reason::new(word, sentence, section)
}

fn last_of_esi(include: &OutlinedInclude<'_>, outline: &Outline<'_>, around: &Surroundings<'_>) -> Reason {
    let is_attempted = outline.around(include).any(|level| level.kind == LevelKind::Attempt);
    let (word, sentence, section) = match around.settings.omits_failed {
        _ if include.may_be_missing() => ("continue", "Nothing stands in its place.", ESI_ALT),
        _ if is_attempted => ("except", "The attempt around it is discarded, and its except runs.", ESI_TRY),
        _ if around.is_attempted_outside => {
            ("except", "The attempt around this fragment is discarded, and its except runs.", ESI_TRY)
        }
        true => ("omit", "Nothing stands in its place, by on_error of fragments.", CONFIGURATION),
        false => ("fail", "The page fails: it is a 502, or cut where it has begun.", CONFIGURATION),
    };
    Reason::new(word, sentence, section)
}

fn last_of_ssi(include: &OutlinedInclude<'_>, around: &Surroundings<'_>) -> Reason {
    if let Some(block) = include.stub() {
        let sentence = format!("The block {} runs, also where the fragment is empty.", block.escape_ascii());
        return Reason::new("stub", sentence, SSI);
    }
    let (word, sentence, section) = match around.settings.is_silent {
        _ if include.variable().is_some() => ("empty", "The variable is empty.", SSI),
        true => ("silent", "Nothing stands in its place, by silent of fragments.", CONFIGURATION),
        false => ("error-text", "SSI's error text stands in its place.", SSI),
    };
    Reason::new(word, sentence, section)
}
