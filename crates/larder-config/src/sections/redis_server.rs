//! A server of Redis or Valkey, and who larder is there: wherever the config names one.
//!
//! In: a URL, or a table. Out: one form. Files are there; passwords and users are never printed.

use std::fmt;
use std::path::PathBuf;

use crate::document::{Node, Table, Value};
use crate::reading::{At, Reading};
use crate::schema::section::section;
use crate::schema::{Consistent, Section as _, Setting, Shape};
use crate::value::certified::CertifiedName;
use crate::value::name::RedisName;
use crate::value::path::ExistingFile;
use crate::value::redis_node::{RedisNode, SentinelAddress};
use crate::value::redis_url::{ONE_SERVER, RedisUrl, UrlPlace};

/// Keys that say something of Sentinel alone.
const OF_SENTINEL: [&str; 4] = ["master", "database", "sentinel_user", "sentinel_password_file"];
/// Keys that say something of TLS alone.
const OF_TLS: [&str; 4] = ["ca_file", "client_cert", "client_key", "server_name"];
/// The most Sentinels, and nodes that are named.
const NAMED_MAX: usize = 31;

section! {
    /// A server of Redis or Valkey: a URL, or this table. Either `url`, or `sentinel` with `master`, or `cluster`.
    pub(crate) struct RedisServerTable in "a table of a Redis" {
        /// The server, with user, password and number of the database where it needs them.
        url: Option<RedisUrl> = ("none"), why "There is nothing to guess from.";
        /// The Sentinels that know which server is the master: all of them, since more than half have to name the same one.
        sentinel: Vec<SentinelAddress>, why "Few have several servers.";
        /// What the Sentinels call the master.
        master: Option<RedisName> = ("none"), why "There is nothing to guess from.";
        /// Some nodes of a Redis Cluster, by which larder finds the others: each node has its share of the keys.
        cluster: Vec<RedisNode>, why "One server has room for most.";
        /// Speak TLS with the Sentinels, the server or the nodes. A URL says it by `rediss://`.
        tls: bool = false, why "Within a private network many do without.";
        /// The number of the database, under Sentinel. A URL says it at its end.
        database: u32 = 0, in 0 ..= 65535, why "What servers have always.";
        /// The user of the server's access control list, with `password_file`.
        user: Option<RedisName> = ("that of the URL"), why "Servers without such a list have none.";
        /// The file that has the password, and nothing else. It is read for each connection, so a password can be changed without a
        /// restart.
        password_file: Option<ExistingFile> = ("that of the URL"), why "Configs are shown around, and passwords are not.";
        /// Trust the certificates in this file (PEM) in place of the system's authorities. An authority vouches for what it has
        /// signed; any other certificate for itself alone.
        ca_file: Option<ExistingFile>, why "The system's authorities are right for public names.";
        /// The certificate chain (PEM) that larder shows to a server that wants one; with `client_key`.
        client_cert: Option<ExistingFile>, why "Redis asks for one unless it is told not to, but only where it speaks TLS.";
        /// Its private key (PEM).
        client_key: Option<ExistingFile>, why "As for `client_cert`.";
        /// The name that the server's certificate has to be for.
        server_name: Option<CertifiedName> = ("the host"), why "Right, unless servers are named by address.";
        /// The user of the Sentinels' own access control list, with `sentinel_password_file`.
        sentinel_user: Option<RedisName>, why "Sentinels mostly have none.";
        /// The file that has the Sentinels' own password.
        sentinel_password_file: Option<ExistingFile>, why "As above.";
    }
}

impl Consistent for RedisServerTable {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        let mut refuse = |key: &str, found: &str, hint: &str| {
            let (key_at, place) = match table.get(key) {
                Some(node) => (At::Key(at, key), &node.place),
                None => (At::Key(at, "url"), &table.place),
            };
            let problem = reading.problem(place, &key_at, found).hint(hint);
            reading.refuse(problem);
        };
        let has = |key: &str| table.get(key).is_some();
        let ways = ["url", "sentinel", "cluster"].map(|way| has(way).then_some(way));
        let (way, other) = {
            let mut said = ways.into_iter().flatten();
            (said.next(), said.next())
        };
        let Some(way) = way else { return refuse("url", "missing key \"url\"", ONE_SERVER) };
        if let Some(other) = other {
            return refuse(other, &format!("it has no meaning beside `{way}`"), ONE_SERVER);
        }
        let is_empty =
            matches!(table.get(way), Some(Node { value: Value::List(list), .. }) if list.is_empty());
        let named = self.sentinel.len().max(self.cluster.len());
        if named > NAMED_MAX || is_empty {
            refuse(way, &format!("found {named}, expected 1 to {NAMED_MAX}"), ONE_SERVER);
        }
        if way == "sentinel" && !has("master") {
            refuse(
                way,
                "there is no `master` beside it",
                "say what the Sentinels call it: master = \"NAME\"",
            );
        }
        if way != "sentinel" {
            for key in OF_SENTINEL.into_iter().filter(|key| has(key)) {
                let hint = match (key, way) {
                    ("database", "cluster") => "a cluster has one database",
                    _ => "a URL says which database: redis://HOST/2",
                };
                refuse(key, "it has no meaning without `sentinel`", hint);
            }
        }
        if way == "url" && has("tls") {
            refuse("tls", "it has no meaning beside `url`", "a URL says it: rediss://HOST");
        }
        let url = self.url.as_ref();
        if has("password_file") && url.is_some_and(|url| url.password.is_some()) {
            refuse("password_file", "the URL has a password as well", "leave one of the two out");
        }
        if has("user") && url.is_some_and(|url| url.user.is_some()) {
            refuse("user", "the URL has a user as well", "leave one of the two out");
        }
        for (user, file) in [("user", "password_file"), ("sentinel_user", "sentinel_password_file")] {
            let has_in_url = user == "user" && url.is_some_and(|url| url.password.is_some());
            if has(user) && !has(file) && !has_in_url {
                refuse(user, &format!("there is no `{file}` beside it"), "a user has a password");
            }
        }
        if !self.is_tls() {
            for key in OF_TLS.into_iter().filter(|key| has(key)) {
                refuse(key, "it is not used", "no TLS is spoken: rediss:// in the URL, or tls = true");
            }
        }
        for (one, other) in [("client_cert", "client_key"), ("client_key", "client_cert")] {
            if has(one) && !has(other) {
                refuse(one, &format!("there is no {other} beside it"), "a certificate is shown with its key");
            }
        }
    }
}

impl RedisServerTable {
    fn is_tls(&self) -> bool {
        self.tls || self.url.as_ref().is_some_and(|url| url.is_tls)
    }

    /// The server. `None` where none is named, which has been noted then.
    pub(crate) fn server(self) -> Option<RedisServer> {
        let is_tls = self.is_tls();
        let file = |file: Option<ExistingFile>| file.map(|file| file.0);
        let name = |name: RedisName| name.as_str().to_owned();
        let mut server = match (self.url, self.master) {
            (Some(url), _) => RedisServer::from(url),
            (None, Some(master)) => RedisServer {
                place: RedisPlace::Sentinel {
                    sentinels: self.sentinel,
                    master,
                    user: self.sentinel_user,
                    password_file: file(self.sentinel_password_file),
                },
                user: None,
                password: None,
                database: self.database,
                tls: None,
            },
            (None, None) if self.cluster.is_empty() => return None,
            (None, None) => RedisServer {
                place: RedisPlace::Cluster(self.cluster),
                user: None,
                password: None,
                database: 0,
                tls: None,
            },
        };
        server.user = self.user.map(name).or(server.user);
        server.password = file(self.password_file).map(RedisPassword::File).or(server.password);
        server.tls = is_tls.then(|| RedisTls {
            ca_file: file(self.ca_file),
            client: file(self.client_cert).zip(file(self.client_key)),
            server_name: self.server_name.map(|name| name.as_str().to_owned()),
        });
        Some(server)
    }
}

/// A server, and who larder is there. Prints neither user nor password.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisServer {
    /// Where it is.
    pub place: RedisPlace,
    /// The user of its access control list.
    pub user: Option<String>,
    /// Its password.
    pub password: Option<RedisPassword>,
    /// The number of the database.
    pub database: u32,
    /// How TLS is spoken; `None`: not at all.
    pub tls: Option<RedisTls>,
}

/// Where a Redis is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisPlace {
    /// TCP.
    Tcp {
        /// A name in lower case or an IP address, an IPv6 address without brackets.
        host: String,
        /// 6379 where none was given.
        port: u16,
    },
    /// A Unix socket.
    Unix(PathBuf),
    /// Where a majority of the Sentinels says that it is.
    Sentinel {
        /// All that there are.
        sentinels: Vec<SentinelAddress>,
        /// What they call the master.
        master: RedisName,
        /// The user of their own access control lists.
        user: Option<RedisName>,
        /// The file with their own password.
        password_file: Option<PathBuf>,
    },
    /// Several nodes, each with its share of the keys: some of them.
    Cluster(Vec<RedisNode>),
}

/// A password. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub enum RedisPassword {
    /// In plain text.
    Text(String),
    /// The file that has it.
    File(PathBuf),
}

/// How TLS is spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisTls {
    /// Who is trusted in place of the system's authorities.
    pub ca_file: Option<PathBuf>,
    /// The certificate that larder shows, and its key.
    pub client: Option<(PathBuf, PathBuf)>,
    /// The name that the certificate has to be for, in place of the host.
    pub server_name: Option<String>,
}

impl From<RedisUrl> for RedisServer {
    fn from(url: RedisUrl) -> Self {
        Self {
            place: match url.place {
                UrlPlace::Tcp { host, port } => RedisPlace::Tcp { host, port },
                UrlPlace::Unix(path) => RedisPlace::Unix(path),
            },
            user: url.user,
            password: url.password.map(RedisPassword::Text),
            database: url.database,
            tls: url.is_tls.then_some(RedisTls { ca_file: None, client: None, server_name: None }),
        }
    }
}

impl fmt::Display for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (database, scheme) = (self.database, if self.tls.is_some() { "rediss" } else { "redis" });
        match &self.place {
            RedisPlace::Unix(path) => write!(f, "unix://{}?db={database}", path.display()),
            RedisPlace::Tcp { host, port } if host.contains(':') => {
                write!(f, "{scheme}://[{host}]:{port}/{database}")
            }
            RedisPlace::Tcp { host, port } => write!(f, "{scheme}://{host}:{port}/{database}"),
            RedisPlace::Sentinel { sentinels, master, .. } => {
                let sentinels: Vec<String> = sentinels.iter().map(ToString::to_string).collect();
                let sentinels = sentinels.join(", ");
                write!(f, "{scheme}, master {master} of the Sentinels {sentinels}, database {database}")
            }
            RedisPlace::Cluster(nodes) => {
                let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
                write!(f, "{scheme}, the cluster of {}", nodes.join(", "))
            }
        }
    }
}

impl RedisServer {
    /// How many Sentinels, or nodes, are named.
    pub fn named(&self) -> usize {
        match &self.place {
            RedisPlace::Sentinel { sentinels, .. } => sentinels.len(),
            RedisPlace::Cluster(nodes) => nodes.len(),
            RedisPlace::Tcp { .. } | RedisPlace::Unix(_) => 0,
        }
    }
}

impl fmt::Debug for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisServer({self})")
    }
}

impl fmt::Debug for RedisPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedisPassword(..)")
    }
}

impl Setting for RedisServer {
    fn shape() -> Shape {
        Shape::AnyOf(vec![RedisUrl::shape(), Shape::Section(RedisServerTable::doc)])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        match &node.value {
            Value::Table(_) => {
                let errors = reading.errors.len();
                let read = RedisServerTable::read(node, at, reading)?;
                (reading.errors.len() == errors).then(|| read.server()).flatten()
            }
            _ => RedisUrl::read(node, at, reading).map(Self::from),
        }
    }
}
