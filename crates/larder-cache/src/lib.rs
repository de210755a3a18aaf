//! The caching rules of RFC 9111 as pure functions with typed reasons.
//!
//! In: heads, fields, two instants and what a rule's settings say. Out: decisions that are values and carry their
//! reason, so that Cache-Status, the log and the metrics all print the same word. No I/O, no clock
//! ([`larder_http::time::Now`] is an argument), no store and no keys: which responses are candidates is found
//! elsewhere, and whether the best of them may be used is decided here.
//!
//! One file per concern, in the RFC's order: [`storable`](mod@storable) (3, 3.5), [`part`] and [`completion`] (3.3,
//! 3.4), [`reuse`](mod@reuse) (4), [`vary`] and [`coding`] (4.1), [`freshness`], `jitter` and [`age`] (4.2),
//! [`stale`] (4.2.4). Then [`validate`] (4.3), [`update`](mod@update) (3.2, 4.3.4, 4.3.5), [`invalidate`] (4.4) and
//! [`groups`] (RFC 9875), [`directives`] (5.2, RFC 9213), and [`answer`](mod@answer) for what a client is sent (RFC
//! 9110 13 and 14). [`cookies`] says whose a cookie is (7.3), [`policy`] holds the settings, [`head`] what is kept,
//! [`explain`] the words for people. [`template`] says which responses are templates, and [`page`] what a page that is made
//! of one says to caches.

pub mod age;
pub mod answer;
mod codec;
pub mod coding;
pub mod completion;
pub mod cookies;
pub mod directives;
pub mod explain;
pub mod freshness;
pub mod groups;
pub mod head;
pub mod invalidate;
mod jitter;
mod not_storable;
pub mod page;
pub mod part;
pub mod policy;
pub mod purge;
pub mod reuse;
pub mod stale;
pub mod storable;
pub mod template;
pub mod update;
pub mod validate;
mod validators;
pub mod vary;

#[cfg(test)]
mod example;

pub use age::ExchangeTimes;
pub use answer::{Answer, answer, not_modified_fields, partial_fields, unsatisfiable_fields};
pub use codec::HeadError;
pub use coding::Codings;
pub use completion::PartAnswer;
pub use cookies::{Caution, HarmlessNames, OwnSign, Relieved, SessionNames, cookies_of, own_sign};
pub use directives::{EffectiveDirectives, Said};
pub use freshness::{Freshness, LifetimeSource};
pub use groups::{GroupTag, GroupTags};
pub use head::{StoredHead, TemplateHead, page_fields};
pub use invalidate::{Verdict, invalidates, is_safe, names_own_target};
pub use not_storable::NotStorable;
pub use page::{PageControl, PageSaid, PartSaid, page_control};
pub use part::{Gap, Part};
pub use policy::{
    Assemble, CachePolicy, Controls, Ignored, JITTER_MAX, Lifetimes, SetCookiePolicy, TemplatePolicy, Wishes,
    is_credentials,
};
pub use purge::tags::{TagFields, Tags};
pub use reuse::{Reuse, UnusableReason, ValidateReason, only_if_cached, reuse};
pub use stale::{
    StaleCause, StaleForbidden, StaleReason, StaleWindow, WindowSource, may_refresh_behind, may_refresh_with,
    may_serve_stale, may_stand_in,
};
pub use storable::{Storability, has_personal_cookie, is_personal, is_shared_with, rejudge, storable};
pub use update::{HeadUpdate, Updated, update, update_by_head, withheld_by_update};
pub use validate::{Confirmed, Offered, conditional_fields, drop_conditionals, matches_304};
pub use validators::Validators;
pub use vary::{Fit, SecondaryKey, Selecting, VaryNames};
