//! A store's values in memcached: its servers alone, or a table that says more about them.

use std::fmt;
use std::time::Duration;

use crate::document::{Node, Value};
use crate::reading::{At, Reading};
use crate::schema::section::section;
use crate::schema::{Consistent, Section, Setting, Shape, TextSetting};
use crate::sections::values::ValueSettings;
use crate::value::media::MediaType;
use crate::value::remote_server::RemoteAddress;
use crate::value::value_key::ValueKey;
use crate::value::words::{Ring, ValueFormat};

/// The most servers of one store.
const SERVERS_MAX: usize = 256;
/// The greatest sum of weights: a ring has 160 points for each.
const WEIGHTS_MAX: u64 = 4096;

section! {
    /// A server with its share of the keys, in place of its address alone: `{ server = "127.0.0.1:11211", weight = 2 }`.
    pub(crate) struct RemoteServerTable in "`[[stores.NAME.memcached.servers]]`" {
        /// Where it listens.
        server: Option<RemoteAddress> = required, why "There is nothing to guess from.";
        /// Its share, compared with the others. The application's client has to have the same.
        weight: u32 = 1, in 1 ..= 256, why "Servers are alike unless it is said.";
    }
}

impl Consistent for RemoteServerTable {}

/// A server with its share of the keys. Prints its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteServerEntry {
    /// Where it listens.
    pub server: RemoteAddress,
    /// Its share, compared with the others; 1 to 256.
    pub weight: u32,
}

impl fmt::Display for RemoteServerEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.server.fmt(f)
    }
}

impl Setting for RemoteServerEntry {
    fn shape() -> Shape {
        Shape::AnyOf(vec![Shape::Text(RemoteAddress::TEXT), Shape::Section(RemoteServerTable::doc)])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        match &node.value {
            Value::Table(_) => {
                let RemoteServerTable { server, weight } = RemoteServerTable::read(node, at, reading)?;
                Some(Self { server: server?, weight })
            }
            _ => RemoteAddress::read(node, at, reading).map(|server| Self { server, weight: 1 }),
        }
    }
}

section! {
    /// Values that an application keeps in memcached, in place of the servers alone:
    /// `memcached = { servers = ["127.0.0.1:11211"], key = "{target}" }`.
    pub(crate) struct MemcachedTable in "`[stores.NAME.memcached]`" {
        /// The servers, in the order in which the application's client has them.
        servers: Vec<RemoteServerEntry> = required, why "There is nothing to guess from.";
        /// How the key of a value is made of a request.
        key: ValueKey = "{target}", why "What nginx's `$request_uri` is, and the simplest that an application can make.";
        /// What a value is. `"body"`: the bytes of a body, a 200 for all who ask. `"http"`: a message (`HTTP/1.1 200 OK`, fields, an
        /// empty line, a body), which is stored or not by its own fields.
        format: ValueFormat = "body", why "One format per store: bytes are never guessed at. This is what applications write for nginx.";
        /// How long larder uses its own copy of a value before it asks for the value again, and never longer than the value stays. `"0s"`
        /// asks each time.
        near: Duration = "1s", in "0s" ..= "1h", why "A value that changes shows within a second, and a crowd costs memcached one request a second.";
        /// How long a look-up may take, connecting included. What takes longer is a miss, and the origin is asked.
        timeout: Duration = "200ms", in "5ms" ..= "10s", why "A server that hangs must not be felt for long. One that is well answers in less than a millisecond.";
        /// The type of bodies, under `format = "body"`.
        default_type: MediaType = "application/octet-stream", why "What no browser shows as a page by mistake.";
        /// Write there what the origin gave, too, where a value can stand for it.
        write: bool = false, why "The values are the application's.";
        /// How keys find their server, where there are several: as the application's client places them. `"ketama"`: libmemcached with
        /// weighted ketama (PHP's `OPT_LIBKETAMA_COMPATIBLE`, pylibmc's `ketama_weighted`). `"consistent"`: libmemcached with
        /// consistent distribution alone (PHP's `DISTRIBUTION_CONSISTENT`, pylibmc's `ketama`). `"nginx"`: `hash ... consistent`.
        ring: Ring = "ketama", why "Most clients of several servers are libmemcached with this.";
        /// Bits of which one in a value's flags tells that it is gzip, as in nginx's `memcached_gzip_flag`. 0 is none.
        gzip_flag: u32 = 0, why "Flags mean what the application says.";
        /// The same for zlib. pylibmc sets 8 where it compresses.
        zlib_flag: u32 = 0, why "Flags mean what the application says.";
    }
}

impl Consistent for MemcachedTable {}

/// Values in memcached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memcached {
    /// At least one.
    pub servers: Vec<RemoteServerEntry>,
    /// How values are named, read and written.
    pub values: ValueSettings,
    /// How keys find their server.
    pub ring: Ring,
    /// Bits of flags that tell gzip.
    pub gzip_flag: u32,
    /// Bits of flags that tell zlib.
    pub zlib_flag: u32,
}

impl Setting for Memcached {
    fn shape() -> Shape {
        let servers = Shape::List(Box::new(Shape::Text(RemoteAddress::TEXT)));
        Shape::AnyOf(vec![servers, Shape::Section(MemcachedTable::doc)])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let table = match &node.value {
            Value::Table(_) => MemcachedTable::read(node, at, reading)?,
            Value::List(items) if items.is_empty() => {
                reading.refuse_value(node, at, "at least one server", None);
                return None;
            }
            _ => {
                let servers = Vec::<RemoteServerEntry>::read(node, at, reading)?;
                MemcachedTable { servers, ..MemcachedTable::absent()? }
            }
        };
        let weights = table.servers.iter().map(|server| u64::from(server.weight)).sum::<u64>();
        if table.servers.len() > SERVERS_MAX || weights > WEIGHTS_MAX {
            let said = format!("at most {SERVERS_MAX} servers, whose weights are {WEIGHTS_MAX} together");
            reading.refuse_value(node, at, said, None);
            return None;
        }
        let MemcachedTable { servers, key, format, near, timeout, default_type, write, .. } = table;
        let values = ValueSettings { key, format, near, timeout, default_type, write };
        let (gzip_flag, zlib_flag) = (table.gzip_flag, table.zlib_flag);
        Some(Self { servers, values, ring: table.ring, gzip_flag, zlib_flag })
    }
}
