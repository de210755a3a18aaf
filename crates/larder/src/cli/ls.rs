//! `larder ls`: what a running larder has stored.
//!
//! In: what URLs begin with. Out: a line per stored response, or a JSON object per line, page after page as they come: a
//! store of millions of responses is listed without being held in memory. What larders share through Redis is listed by choice, as far as a number
//! of names goes; standard error says how far that was.

use std::process::ExitCode;
use std::time::Duration;

use http::Method;
use larder_proxy::objects::{Objects, StoredObject};

use super::admin::{AdminArguments, encoded, run};
use super::ended::Ended;
use super::output::{printable, say, write_out};
use super::table::{bytes, counted, signed_time, time};

/// Responses asked for at once.
const PAGE: usize = 500;

#[derive(Debug, clap::Args)]
pub(super) struct LsArguments {
    /// Only URLs that begin so: http://HOST/PATH, HOST/PATH, or a HOST; with or without * at the end
    #[arg(value_name = "PREFIX", default_value = "", hide_default_value = true)]
    prefix: String,
    /// Only this store
    #[arg(long, value_name = "NAME")]
    store: Option<String>,
    /// What larders share through Redis, too, behind what this larder has
    #[arg(long)]
    remote: bool,
    /// Have each Redis look at about so many names at most, in all
    #[arg(long, value_name = "N", default_value_t = 1_000_000, requires = "remote", value_parser = clap::value_parser!(u64).range(1..))]
    names: u64,
    /// At most so many responses [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Print JSON, an object per line
    #[arg(long, conflicts_with = "urls")]
    json: bool,
    /// Print URLs alone, one per line, as larder rm takes them
    #[arg(long)]
    urls: bool,
    #[command(flatten)]
    admin: AdminArguments,
}

pub(super) fn ls(arguments: &LsArguments) -> ExitCode {
    match run(list(arguments)) {
        Ok(seen) => {
            told_of(&seen);
            ExitCode::SUCCESS
        }
        Err(ended) => ended.told(),
    }
}

/// What a listing has met.
#[derive(Default)]
struct Seen {
    /// Records on disks that could not be read.
    on_disks: u64,
    /// The same in Redis.
    remote: u64,
    /// Names that Redis has looked at.
    names: u64,
    /// It has so many, and was not asked to the end.
    left_of: Option<u64>,
}

/// Says what the listing lacks.
fn told_of(seen: &Seen) {
    if seen.on_disks > 0 {
        say(format_args!(
            "larder: warning: {} on disks could not be read: larder fsck tells which",
            counted(seen.on_disks, "record", "records")
        ));
    }
    if seen.remote > 0 {
        say(format_args!(
            "larder: warning: {} in Redis could not be read, or have a long head",
            counted(seen.remote, "record", "records")
        ));
    }
    if let Some(names) = seen.left_of {
        say(format_args!(
            "larder: the listing is not complete: Redis has looked at about {}, and its last server has {names}; --names N has it go further",
            counted(seen.names, "name", "names")
        ));
    }
}

/// Prints all pages; says what it has met.
async fn list(arguments: &LsArguments) -> Result<Seen, Ended> {
    let mut left = arguments.limit.unwrap_or(u64::MAX);
    let larder = arguments.admin.larder()?;
    let (mut seen, mut cursor, mut has_head) = (Seen::default(), None, false);
    let mut last_url = String::new();
    while left > 0 {
        let limit = usize::try_from(left).map_or(PAGE, |left| left.min(PAGE));
        let store = arguments.store.as_deref();
        let mut target = target(&arguments.prefix, store, limit, cursor.as_deref());
        if arguments.remote {
            let names = arguments.names.saturating_sub(seen.names);
            target.push_str(&format!("&remote=true&names={names}"));
        }
        let page: Objects = larder.ask_for(Method::GET, &target, "lists what it has stored").await?;
        let is_remote = page.names.is_some();
        *if is_remote { &mut seen.remote } else { &mut seen.on_disks } += page.unreadable;
        seen.names += page.looked_at;
        left = left.saturating_sub(page.objects.len() as u64);
        let mut out = String::new();
        if !arguments.json
            && !arguments.urls
            && !page.objects.is_empty()
            && !std::mem::replace(&mut has_head, true)
        {
            out.push_str(&line("STATUS", "BYTES", "AGE", "TTL", "STORE", "WHERE", "URL"));
        }
        for object in &page.objects {
            if arguments.urls {
                // Responses under one URL come one after the other.
                if last_url != object.url {
                    out.push_str(&format!("{}\n", printable(&object.url)));
                    last_url.clone_from(&object.url);
                }
                continue;
            }
            match arguments.json {
                true => out.push_str(&serde_json::to_string(object).map_err(|e| Ended::Writing(e.into()))?),
                false => out.push_str(&told(object)),
            }
            if arguments.json {
                out.push('\n');
            }
        }
        if !write_out(out.as_bytes()).map_err(Ended::Writing)? {
            break;
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
        if is_remote && seen.names >= arguments.names {
            seen.left_of = page.names;
            break;
        }
    }
    Ok(seen)
}

/// What asks for a page of a listing, from `cursor` on.
pub(super) fn target(prefix: &str, store: Option<&str>, limit: usize, cursor: Option<&str>) -> String {
    let mut target = format!("/objects?limit={limit}");
    let prefix = Some(prefix).filter(|prefix| !prefix.is_empty());
    for (name, value) in [("prefix", prefix), ("store", store), ("cursor", cursor)] {
        if let Some(value) = value {
            target.push_str(&format!("&{name}={}", encoded(value)));
        }
    }
    target
}

fn line(status: &str, bytes: &str, age: &str, ttl: &str, store: &str, places: &str, url: &str) -> String {
    format!("{status:>6}  {bytes:>9}  {age:>7}  {ttl:>7}  {store:<9} {places:<14} {url}\n")
}

fn told(object: &StoredObject) -> String {
    let url = format!("{}{}", object.url, distinction(object));
    let age = time(Duration::from_secs(object.age_seconds));
    let ttl = match object {
        StoredObject { gone: true, .. } => "gone".to_owned(),
        StoredObject { soft: true, .. } => "soft".to_owned(),
        StoredObject { invalidated: true, .. } => "invalid".to_owned(),
        StoredObject { by_hand: true, .. } => "stays".to_owned(),
        _ => signed_time(object.ttl_seconds),
    };
    let status = object.status.to_string();
    line(
        &status,
        &bytes(object.body_bytes),
        &age,
        &ttl,
        &printable(&object.store),
        &places(object),
        &printable(&url),
    )
}

/// Where it lies, in a word or two: which disks they are is told by `larder get --head`.
fn places(object: &StoredObject) -> String {
    if object.file.is_some() {
        return if object.by_hand { "files, by hand" } else { "files" }.to_owned();
    }
    if object.places.iter().any(|place| place == "remote") {
        return "remote".to_owned();
    }
    let in_memory = object.places.iter().any(|place| place == "memory");
    let disks = object.places.len() - usize::from(in_memory);
    let on_disks = match disks {
        0 => String::new(),
        1 => "disk".to_owned(),
        disks => format!("{disks} disks"),
    };
    match (in_memory, disks) {
        (true, 0) => "memory".to_owned(),
        (true, _) => format!("memory+{on_disks}"),
        (false, _) => on_disks,
    }
}

/// What tells it apart from others under the same URL.
pub(super) fn distinction(object: &StoredObject) -> String {
    let mut told = Vec::new();
    if let Some(part) = &object.part {
        let complete = part.complete.map_or_else(|| "*".to_owned(), |length| length.to_string());
        told.push(format!("bytes {}-{}/{complete}", part.first, part.last));
    }
    let said = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    if !object.variant.is_empty() {
        let values: Vec<String> = object.variant.iter().map(said).collect();
        told.push(format!("key: {}", values.join(", ")));
    }
    told.extend(object.vary.iter().map(|field| format!("{}: {}", field.name, said(&field.value))));
    if told.is_empty() { String::new() } else { format!("  [{}]", told.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_proxy::explain::PartBounds;
    use larder_proxy::objects::Varying;

    fn object() -> StoredObject {
        StoredObject {
            url: "http://a/b".to_owned(),
            store: "default".to_owned(),
            places: vec!["memory".to_owned()],
            file: None,
            by_hand: false,
            status: 200,
            content_type: None,
            body_bytes: 12_595,
            part: None,
            age_seconds: 12,
            ttl_seconds: 3600,
            stored_at: String::new(),
            variant: Vec::new(),
            vary: Vec::new(),
            invalidated: false,
            soft: false,
            cookies: Vec::new(),
            cookies_withheld: Vec::new(),
            gone: false,
            language: None,
            fields: Vec::new(),
        }
    }

    #[test]
    fn a_response_is_a_line() {
        assert_eq!(
            told(&object()),
            "   200   12.3 KiB     12 s   60 min  default   memory         http://a/b\n"
        );
        let places: Vec<String> = ["memory", "/d1", "/d2"].map(str::to_owned).to_vec();
        let stale = StoredObject { ttl_seconds: -5, places, ..object() };
        assert_eq!(
            told(&stale),
            "   200   12.3 KiB     12 s     -5 s  default   memory+2 disks http://a/b\n"
        );
        let invalid = StoredObject { invalidated: true, places: vec!["/d1".to_owned()], ..object() };
        assert!(told(&invalid).contains("invalid  default   disk  "), "{}", told(&invalid));
        let gone = StoredObject { gone: true, ..invalid };
        assert!(told(&gone).contains("   gone  default   disk  "), "{}", told(&gone));
        let (file, places) = (Some("/html/a/b".to_owned()), vec!["files".to_owned()]);
        let stored = StoredObject { file, places, ..object() };
        assert!(told(&stored).contains(" 60 min  default   files          http"), "{}", told(&stored));
        let remote = StoredObject { places: vec!["remote".to_owned()], ..object() };
        assert!(told(&remote).contains(" 60 min  default   remote         http"), "{}", told(&remote));
        let by_hand = StoredObject { by_hand: true, ttl_seconds: 3_153_600_000, ..stored };
        assert!(told(&by_hand).contains("  stays  default   files, by hand http"), "{}", told(&by_hand));
    }

    #[test]
    fn what_tells_responses_apart_stands_behind_the_url() {
        let varying = Varying { name: "accept-language".to_owned(), value: Some("de".to_owned()) };
        let object = StoredObject {
            part: Some(PartBounds { first: 0, last: 9, complete: None }),
            variant: vec![Some("x".to_owned()), None],
            vary: vec![varying],
            ..object()
        };
        assert_eq!(distinction(&object), "  [bytes 0-9/*; key: x, none; accept-language: de]");
    }
}
