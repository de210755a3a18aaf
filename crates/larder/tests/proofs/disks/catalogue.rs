//! What there is to ask for, and what may be answered.
//!
//! In: a target and its answer. Out: whether each byte is right, and of which version. A body derives from the target, the
//! version and, where the origin varies by it, the client's flavour, so that one byte of another response shows. A
//! version is *acknowledged* once the POST that made it was answered, or a purge that came after it: from then on an older one
//! is wrong. Resources have names of each kind that a purge may use.
//! Numbers are drawn from a seed, so that a run that failed can be told from the others.

use std::sync::atomic::{AtomicU64, Ordering};

use larder_testkit::client::{End, Request, Response};
use larder_testkit::seeded::bytes_of;
use parking_lot::Mutex;

/// Around what the engine treats differently: inside a record, one piece, several pieces.
const SIZES: [u64; 12] = [
    134,
    134,
    1_000,
    4_096,
    20_000,
    100_000,
    256 * 1024,
    256 * 1024 + 1,
    600_000,
    1_000_000,
    1_500_000,
    3_000_000,
];

/// One of the resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) number: usize,
    pub(crate) bytes: u64,
}

/// Where resources are; the admin address takes the first as well.
const HOSTS: [&str; 4] = ["localhost", "localhost", "localhost", "other.test"];
/// What their paths begin with.
const SHELVES: [char; 3] = ['a', 'b', 'c'];
/// The last acknowledgements, which are told where one did not hold.
const ACKNOWLEDGED_TOLD: usize = 4;
/// More tags than are kept of a response.
const TAGS_TOO_MANY: usize = 1001;

impl Resource {
    pub(crate) fn target(self) -> String {
        format!("/{}/{}/{}", self.shelf(), self.number, self.bytes)
    }

    /// The resource that a target names.
    pub(crate) fn of(target: &str) -> Option<Self> {
        let mut parts = target.split('/').skip(2);
        let mut number = || parts.next()?.parse::<u64>().ok();
        Some(Self { number: number()? as usize, bytes: number()? })
    }

    pub(crate) fn host(self) -> &'static str {
        HOSTS[self.number / SHELVES.len() % HOSTS.len()]
    }

    pub(crate) fn url(self) -> String {
        format!("http://{}{}", self.host(), self.target())
    }

    pub(crate) fn shelf(self) -> char {
        SHELVES[self.number % SHELVES.len()]
    }

    /// A tag that some have, on all hosts.
    pub(crate) fn tag(self) -> String {
        format!("t{}", self.number % 5)
    }

    /// A cache group that some have; it is of one host.
    pub(crate) fn group(self) -> String {
        format!("g{}", self.number % 4)
    }

    pub(crate) fn content_type(self) -> &'static str {
        if self.number.is_multiple_of(2) { "text/html" } else { "image/png" }
    }

    /// For how long it is fresh, where lifetimes are short; some may be used for a while after that.
    pub(crate) fn short_lifetime(self) -> &'static str {
        match self.number % 4 {
            0 | 1 => "max-age=86400",
            2 => "max-age=1",
            _ => "max-age=1, stale-while-revalidate=60",
        }
    }

    /// Whether it may be used when it is stale, where lifetimes are short.
    pub(crate) fn has_window(self) -> bool {
        self.short_lifetime().contains("stale")
    }

    /// Whether it has so many tags that it counts as if it had all.
    pub(crate) fn has_every_tag(self) -> bool {
        self.number % 11 == 10
    }

    /// The fields by which purges name it.
    pub(crate) fn names(self) -> [String; 3] {
        let mut tags = self.tag();
        if self.has_every_tag() {
            (0..TAGS_TOO_MANY).for_each(|number| tags.push_str(&format!(" x{number}")));
        }
        [
            format!("Surrogate-Key: {tags}"),
            format!("Cache-Groups: \"{}\"", self.group()),
            format!("Content-Type: {}", self.content_type()),
        ]
    }

    /// Whether its answer is of unknown length.
    pub(crate) fn is_chunked(self) -> bool {
        self.number.is_multiple_of(5)
    }

    /// Whether it is another one for each flavour.
    pub(crate) fn has_flavours(self) -> bool {
        self.number % 7 == 1
    }

    /// The entity tag of a version, another one for each flavour.
    pub(crate) fn etag(self, version: u64, flavour: &str) -> String {
        match self.has_flavours() {
            true => format!("\"v{version}-{flavour}\""),
            false => format!("\"v{version}\""),
        }
    }

    /// What its bytes derive from.
    pub(crate) fn seed(self, version: u64, flavour: &str) -> String {
        let flavour = if self.has_flavours() { flavour } else { "" };
        format!("{} {version} {flavour}", self.target())
    }
}

/// Numbers that look random, the same for the same seed.
pub(crate) struct Draws {
    seed: String,
    drawn: u64,
}

impl Draws {
    pub(crate) fn new(seed: impl std::fmt::Display) -> Self {
        Self { seed: seed.to_string(), drawn: 0 }
    }

    /// One of `0..below`.
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        let bytes = bytes_of(&self.seed, self.drawn * 8, 8);
        self.drawn += 1;
        u64::from_le_bytes(bytes[..].try_into().unwrap()) % below
    }

    pub(crate) fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// All resources, with their versions at the origin and as acknowledged.
pub(crate) struct Catalogue {
    pub(crate) resources: Vec<Resource>,
    at_origin: Vec<AtomicU64>,
    acknowledged: Vec<AtomicU64>,
    /// What acknowledged which version, in words.
    by: Vec<Mutex<Vec<String>>>,
}

impl Catalogue {
    pub(crate) fn new(count: usize) -> Self {
        Self::of_sizes(count, &SIZES)
    }

    pub(crate) fn of_sizes(count: usize, sizes: &[u64]) -> Self {
        let resource = |number| Resource { number, bytes: sizes[number % sizes.len()] };
        let numbers = || (0..count).map(|_| AtomicU64::new(1)).collect();
        Self {
            resources: (0..count).map(resource).collect(),
            at_origin: numbers(),
            acknowledged: numbers(),
            by: (0..count).map(|_| Mutex::default()).collect(),
        }
    }

    /// The version that the origin has now.
    pub(crate) fn version(&self, resource: Resource) -> u64 {
        self.at_origin[resource.number].load(Ordering::SeqCst)
    }

    /// The origin has a new version.
    pub(crate) fn change(&self, resource: Resource) -> u64 {
        self.at_origin[resource.number].fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The oldest version that may be served from now on.
    pub(crate) fn oldest(&self, resource: Resource) -> u64 {
        self.acknowledged[resource.number].load(Ordering::SeqCst)
    }

    /// A POST was answered, or a purge.
    pub(crate) fn acknowledge(&self, resource: Resource, version: u64, by: &str) {
        if self.acknowledged[resource.number].fetch_max(version, Ordering::SeqCst) < version {
            self.by[resource.number].lock().push(format!("{version} by {by}"));
        }
    }
}

/// One GET, and what was known when it was sent.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) resource: Resource,
    flavour: &'static str,
    /// First and last byte.
    range: Option<(u64, u64)>,
    /// Only where it is another version.
    unless: Option<u64>,
    oldest: u64,
}

impl Asked {
    /// The whole.
    pub(crate) fn whole(catalogue: &Catalogue, resource: Resource, flavour: &'static str) -> Self {
        Self { resource, flavour, range: None, unless: None, oldest: catalogue.oldest(resource) }
    }

    /// The whole, by a client that has this version.
    pub(crate) fn unless(catalogue: &Catalogue, resource: Resource, version: u64) -> Self {
        Self { unless: Some(version), ..Self::whole(catalogue, resource, "plain") }
    }

    /// Some of it.
    pub(crate) fn part(catalogue: &Catalogue, resource: Resource, draws: &mut Draws) -> Self {
        let first = draws.below(resource.bytes);
        let last = first + draws.below(resource.bytes - first);
        Self { range: Some((first, last)), ..Self::whole(catalogue, resource, "plain") }
    }

    pub(crate) fn request(&self) -> Request {
        let request = Request::new("GET", &self.resource.target(), self.resource.host());
        let mut request = request.field("X-Flavour", self.flavour);
        if let Some((first, last)) = self.range {
            request = request.field("Range", &format!("bytes={first}-{last}"));
        }
        if let Some(version) = self.unless {
            request = request.field("If-None-Match", &self.resource.etag(version, self.flavour));
        }
        request
    }

    /// Whether what came is right, as far as it came; says what is not.
    pub(crate) fn check(&self, catalogue: &Catalogue, response: &Response) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{what}: {self:?}, {response}"));
        let (first, last) = match (response.status, self.range) {
            (200, _) => (0, self.resource.bytes - 1),
            (206, Some((first, last))) => (first, last),
            (304, _) if self.unless.is_some() && version_of(response) == self.unless => (0, 0),
            _ => return wrong("another status"),
        };
        let expected_range = format!("bytes {first}-{last}/{}", self.resource.bytes);
        if response.status == 206 && response.fields.first("content-range") != Some(&expected_range) {
            return wrong("another range");
        }
        let Some(version) = version_of(response) else { return wrong("no version") };
        if version < self.oldest {
            let by = catalogue.by[self.resource.number].lock();
            let since = by.iter().rev().take(ACKNOWLEDGED_TOLD).collect::<Vec<_>>();
            return wrong(&format!("older than version {}, which was acknowledged ({since:?})", self.oldest));
        }
        if version > catalogue.version(self.resource) {
            return wrong("a version that never was");
        }
        if response.status == 304 {
            return Ok(());
        }
        let all = last + 1 - first;
        let came = response.body.len() as u64;
        if came > all || (response.end == End::Complete && came != all) {
            return wrong("another length");
        }
        let expected = bytes_of(&self.resource.seed(version, self.flavour), first, came);
        if response.body != expected {
            let at = response.body.iter().zip(&expected[..]).position(|(a, b)| a != b);
            return wrong(&format!("another byte at {at:?} of {came}"));
        }
        Ok(())
    }
}

/// The version that an answer says it is of.
pub(crate) fn version_of(response: &Response) -> Option<u64> {
    let tag = response.fields.first("etag")?.strip_prefix("\"v")?.strip_suffix('"')?;
    tag.split('-').next()?.parse().ok()
}
