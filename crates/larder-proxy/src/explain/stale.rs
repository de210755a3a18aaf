//! What may be done with a stored response past its lifetime, for how long, and who says so; and when it is refreshed
//! before.

use std::time::Duration;

use larder_cache::stale::{while_revalidate, window};
use larder_cache::{
    CachePolicy, StaleCause, StaleForbidden, StaleReason, StaleWindow, StoredHead, WindowSource,
    may_refresh_behind, may_serve_stale,
};
use larder_http::time::Now;

use super::{Reason, StaleUse, Window, seconds};

/// What may be done with a stored response at `now`, when the origin fails or while it is asked.
pub(super) fn stale_use(stored: &StoredHead, now: Now, policy: &CachePolicy) -> Vec<StaleUse> {
    let causes = [
        ("origin-dead", StaleCause::OriginDead, "stale_if_dead"),
        ("origin-error", StaleCause::OriginError, "stale_if_error"),
    ];
    let told = causes.map(|(cause, of, key)| {
        let may = may_serve_stale(stored, now, of, policy);
        let is_a_matter_of_time = matches!(may, Ok(_) | Err(StaleForbidden::TooOld));
        let window = window(&stored.stale, of, policy).filter(|_| is_a_matter_of_time);
        let reason = may.map_or_else(forbidden, ground);
        let window = window.map(|window| told(window, "stale-if-error", key));
        StaleUse { cause: cause.to_owned(), allowed: may.is_ok(), reason, window }
    });
    told.into_iter().chain(behind(stored, now, policy)).collect()
}

/// Whether it may be used while it is refreshed behind, where somebody says so at all.
fn behind(stored: &StoredHead, now: Now, policy: &CachePolicy) -> Option<StaleUse> {
    let window = while_revalidate(&stored.stale, policy)?;
    let allowed = may_refresh_behind(stored, now, policy);
    let because = |sentence: &str| {
        let of = StaleReason::WhileRevalidate;
        Reason::new(of.token(), sentence, of.section())
    };
    // What forbids it whatever the time, forbids it for a dead origin too.
    let (reason, forbidden) = match may_serve_stale(stored, now, StaleCause::OriginDead, policy) {
        _ if allowed => (ground(StaleReason::WhileRevalidate), false),
        Err(rule) if rule != StaleForbidden::TooOld => (forbidden(rule), true),
        _ if stored.freshness.is_fresh(now) => {
            (because("It is fresh, and the request asks for its validation."), false)
        }
        _ => (because("The time in which it may be refreshed behind has passed."), false),
    };
    let window = (!forbidden).then(|| told(window, "stale-while-revalidate", "stale_while_revalidate"));
    Some(StaleUse { cause: "while-revalidate".to_owned(), allowed, reason, window })
}

fn ground(of: StaleReason) -> Reason {
    Reason::new(of.token(), of.sentence(), of.section())
}

fn forbidden(rule: StaleForbidden) -> Reason {
    Reason::new(rule.token(), rule.sentence(), rule.section())
}

/// A window with the directive or the setting that it comes from.
fn told(window: StaleWindow, directive: &str, key: &str) -> Window {
    let StaleWindow { length, source } = window;
    let field = match source {
        WindowSource::Response => format!("{directive}={}", length.as_secs()),
        WindowSource::Rule => format!("{key} = {length:?}"),
    };
    Window { seconds: seconds(length), source: source.token().to_owned(), field }
}

/// How long it takes until a use begins to refresh a fresh response that took `took` to come; zero where it is time.
pub(super) fn until_refresh_ahead(of: &larder_cache::Freshness, took: Duration, now: Now) -> Duration {
    of.remaining(now).saturating_sub(of.refresh_ahead(took))
}
