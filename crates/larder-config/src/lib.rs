//! The config file: TOML text in, checked settings out, every error at once.
//!
//! In: a file, or text with the directory that its relative paths start from, or a command line alone. Out: a
//! [`Checked`] config with its warnings, or [`Errors`]: each with file, line, column, key, what was found, what was
//! expected and often a hint. Nothing is half applied: a config with one error is no config.
//!
//! Every key is declared once, in `sections/`, by the `section!` macro: name, type, unit, default, sentence and
//! reason. The reader, the nearest-name hints, [`reference_markdown`] and [`json_schema`] all come from there.
//! The modules in their order: `document` (TOML to nodes that know their place), `schema` and `value` (nodes to
//! values), `sections` (the keys), `checks` (what only the whole config can tell), `told` (what of the text is kept).
//! Deliberately absent: reading anything but the file itself and what kind of thing it names, and any type of the
//! crates that the settings are for: the binary maps one to the other.

mod checks;
mod document;
mod flags;
mod load;
mod places;
mod problem;
mod reading;
mod schema;
mod sections;
mod told;
mod value;

pub use flags::Flags;
pub use load::{Checked, accelerate, load, load_with, parse, parse_with};
pub use places::Places;
pub use problem::{Errors, Problem};
pub use schema::json::json_schema;
pub use schema::page::reference_markdown;
pub use sections::acme::{Acme, ExternalAccount};
pub use sections::admin::AdminSettings;
pub use sections::assemble::AssembleSetting;
pub use sections::config::Config;
pub use sections::defaults::Defaults;
pub use sections::disk::Disk;
pub use sections::edits::FieldEdits;
pub use sections::ejection::Ejection;
pub use sections::files::Files;
pub use sections::fleet::Fleet;
pub use sections::fragments::Fragments;
pub use sections::health::Health;
pub use sections::key::{KeySettings, QueryParts, TRACKING_PARAMETERS};
pub use sections::limits::Limits;
pub use sections::listen::ListenEntry;
pub use sections::live::Live;
pub use sections::log::Log;
pub use sections::memcached::{Memcached, RemoteServerEntry};
pub use sections::origin::Origin;
pub use sections::place::StoreRule;
pub use sections::purge::{PurgeRules, PurgeSetting};
pub use sections::purging::Purging;
pub use sections::redis::Redis;
pub use sections::redis_server::{RedisPassword, RedisPlace, RedisServer, RedisTls};
pub use sections::retry::Retry;
pub use sections::rule::Rule;
pub use sections::server::ServerEntry;
pub use sections::settings::{Layer, Resolved, Settings};
pub use sections::site::Site;
pub use sections::site_tls::{CertificateFiles, Hsts, RedirectHttps, SiteTls};
pub use sections::store::{DEFAULT_STORE, Store};
pub use sections::tags::TagFields;
pub use sections::tls::Tls;
pub use sections::values::ValueSettings;
pub use sections::versions::{VersionPlace, Versions, VersionsSetting};
pub use told::difference::{DIFF_LINES_MAX, DiffKind, DiffLine, Difference};
pub use told::{ConfigText, RulePlace, SitePlace};
pub use value::absent_status::AbsentStatus;
pub use value::acme::{AccountId, AcmeContact, AcmeDirectory, AcmeProfile};
pub use value::certified::CertifiedName;
pub use value::cidr::Cidr;
pub use value::disk_size::DiskSize;
pub use value::duration::{parse as read_duration, print_duration};
pub use value::glob::{PathGlob, PathRegex, glob_to_regex};
pub use value::harmless::HarmlessCookie;
pub use value::hash_by::HashBy;
pub use value::host::{HostName, HostPattern};
pub use value::lifetimes::Lifetimes;
pub use value::listen::ListenAddress;
pub use value::matching::ValueMatch;
pub use value::media::{BareMediaType, MediaPattern, MediaType};
pub use value::mode::FileMode;
pub use value::name::{CookieName, HiddenParameter, MemberName, Name, ParameterName, RedisName, RuleName};
pub use value::name_server::NameServer;
pub use value::path::{AccessLog, Directory, ExistingFile, StateDirectory};
pub use value::percent::Percent;
pub use value::probe::{ProbeHost, ProbeTarget};
pub use value::purge_path::PurgePath;
pub use value::query::QueryChoice;
pub use value::redis_node::{RedisNode, SentinelAddress};
pub use value::remote_server::RemoteAddress;
pub use value::retry_on::RetryOn;
pub use value::secret::Secret;
pub use value::secret_field::SecretField;
pub use value::sent_host::SentHost;
pub use value::server::Server;
pub use value::session::SessionCookie;
pub use value::size::ByteSize;
pub use value::statuses::StatusRange;
pub use value::tag_field::TAG_FIELDS;
pub use value::target::TargetField;
pub use value::value_key::{ValueKey, ValueKeyPart};
pub use value::version_key::VersionKey;
pub use value::words::{
    AcmeChallenge, AssembleMode, Balance, CacheMode, ClientAddresses, ClientAuth, Cookies, Escape, HeadMode,
    Ignored, Invalidate, Layout, LogFormat, OnError, Protocol, RecordCoding, RequestDirectives, Ring,
    SetCookie, TlsVersion, ValueFormat,
};

#[cfg(test)]
mod tests;
