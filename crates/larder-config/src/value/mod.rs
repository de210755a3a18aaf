//! One file per kind of value: how it is written, what is refused, and the hint for what people try instead.

pub(crate) mod address;
pub(crate) mod certified;
pub(crate) mod cidr;
pub(crate) mod count;
pub(crate) mod duration;
pub(crate) mod field;
pub(crate) mod glob;
pub(crate) mod hash_by;
pub(crate) mod host;
pub(crate) mod lifetimes;
pub(crate) mod matching;
pub(crate) mod method;
pub(crate) mod name;
pub(crate) mod name_server;
pub(crate) mod path;
pub(crate) mod percent;
pub(crate) mod probe;
pub(crate) mod query;
pub(crate) mod retry_on;
pub(crate) mod secret;
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod size;
pub(crate) mod statuses;
pub(crate) mod target;
pub(crate) mod words;
