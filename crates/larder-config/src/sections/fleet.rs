//! Larders that share their purges.

use std::time::Duration;

use crate::document::{Node, Value};
use crate::reading::{At, Reading};
use crate::schema::section::section;
use crate::schema::{Consistent, Fallback, Section as _, Setting, Shape};
use crate::sections::redis_server::RedisServer;
use crate::value::lease::Lease;
use crate::value::name::{MemberName, Name};

section! {
    /// Several larders that purge together: `fleet = { redis = "redis://cache.internal" }`. A purge at one of them reaches
    /// all, and its answer says which of them have applied it. Larders that share the responses of a store are a fleet without this
    /// table as well.
    pub(crate) struct FleetTable in "`[fleet]`" {
        /// The Redis or Valkey where the purges lie. All members name the same server and database.
        redis: Option<RedisServer> = ("that of the stores whose responses larders share"), why "Where responses are shared, purges are as well.";
        /// What this larder is called in the fleet. No other member has this name.
        name: Option<MemberName> = ("the host name"), why "Hosts have names of their own already.";
        /// How long this larder uses what it has stored without hearing from Redis. After that it asks the origin before each use.
        /// `"none"`: for ever, and then a purge is complete only when every member has confirmed it. All members should have the same.
        lease: Lease = "10m", why "A Redis that is restarted or moved is not felt. A member that hangs is waited for that long.";
        /// How long a purge waits for the other members before it is answered.
        wait: Duration = "2s", in "0s" ..= "1m", why "Members that are well answer within milliseconds.";
        /// How long one call to Redis may take, connecting included.
        timeout: Duration = "500ms", in "5ms" ..= "10s", why "No request waits for it.";
        /// What the names of the fleet's keys in Redis begin with. Fleets with different prefixes share nothing.
        prefix: Name = "larder", why "One Redis can serve several fleets.";
    }
}

impl Consistent for FleetTable {}

impl Default for Fleet {
    fn default() -> Self {
        let FleetTable { redis, name, lease, wait, timeout, prefix } = Fallback::Absent.value();
        Self { redis, name, lease: lease.0, wait, timeout, prefix }
    }
}

/// A fleet of larders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fleet {
    /// Where its purges lie, where that is said.
    pub redis: Option<RedisServer>,
    /// The name of this member; the host name where there is none.
    pub name: Option<MemberName>,
    /// How long stored responses are used without hearing from the server. `None`: for ever.
    pub lease: Option<Duration>,
    /// How long a purge waits for the other members.
    pub wait: Duration,
    /// How long a call to the server may take.
    pub timeout: Duration,
    /// What the names of its keys begin with.
    pub prefix: Name,
}

impl Setting for Fleet {
    fn shape() -> Shape {
        Shape::Section(FleetTable::doc)
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        if !matches!(node.value, Value::Table(_)) {
            let hint = "write fleet = { redis = \"redis://HOST\" }".to_owned();
            reading.refuse_value(node, at, "a table", Some(hint));
            return None;
        }
        let FleetTable { redis, name, lease, wait, timeout, prefix } = FleetTable::read(node, at, reading)?;
        Some(Self { redis, name, lease: lease.0, wait, timeout, prefix })
    }
}
