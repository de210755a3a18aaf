//! What a store has in Redis or Valkey: values that an application keeps there, or records of larder's own.

use std::time::Duration;

use crate::document::{Node, Value};
use crate::reading::{At, Reading};
use crate::schema::section::section;
use crate::schema::{Consistent, Fallback, Section, Setting, Shape};
use crate::sections::redis_server::{RedisServer, RedisServerTable};
use crate::sections::values::ValueSettings;
use crate::value::media::MediaType;
use crate::value::redis_url::ONE_SERVER;
use crate::value::value_key::ValueKey;
use crate::value::words::{RecordCoding, ValueFormat};

/// Keys that say something of values alone.
const OF_VALUES: [&str; 3] = ["near", "default_type", "write"];

/// A key that says something of records alone.
const OF_RECORDS: &str = "compress";

/// What to write instead.
const HINT: &str = "without `key` and `format` the store has responses that larders share; for values that an application writes, say how it names \
                    them: key = \"{target}\"";

section! {
    /// Responses that several larders share through Redis or Valkey: `redis = { url = "redis://127.0.0.1:6379/0" }`, or the URL alone. With
    /// `key` or `format`, values that an application keeps there: `redis = { url = "redis://127.0.0.1:6379/0", key = "page:{host}{target}" }`.
    /// `near`, `default_type` and `write` are for such values, `compress` is for responses that larders share.
    pub(crate) struct RedisTable in "`[stores.NAME.redis]`" {
        /// How the key of a value is made of a request, for values of an application.
        key: ValueKey = "{target}", why "What nginx's `$request_uri` is, and the simplest that an application can make.";
        /// What a value is. `"body"`: the bytes of a body, a 200 for all who ask. `"http"`: a message (`HTTP/1.1 200 OK`, fields, an
        /// empty line, a body), which is stored or not by its own fields.
        format: ValueFormat = "body", why "One format per store: bytes are never guessed at.";
        /// How long larder uses its own copy of a value before it asks for the value again, and never longer than the value stays. `"0s"`
        /// asks each time.
        near: Duration = "1s", in "0s" ..= "1h", why "A value that changes shows within a second, and a crowd costs Redis one request a second.";
        /// How long a look-up may take, connecting included. What takes longer is a miss, and the origin is asked.
        timeout: Duration = "200ms", in "5ms" ..= "10s", why "A server that hangs must not be felt for long. One that is well answers in less than a millisecond.";
        /// How larders write the bodies of shared responses: `"none"` as they are, `"lz4"` compressed where that saves an eighth at least. All larders
        /// read both.
        compress: RecordCoding = "none", why "It costs each larder time, and pays where the memory of Redis is what is short.";
        /// The type of bodies, under `format = "body"`.
        default_type: MediaType = "application/octet-stream", why "What no browser shows as a page by mistake.";
        /// Write there what the origin gave, too, where a value can stand for it.
        write: bool = false, why "The values are the application's.";
        flatten server: RedisServerTable, "Where it is.";
    }
}

impl Consistent for RedisTable {}

/// A store in Redis or Valkey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redis {
    /// The server.
    pub server: RedisServer,
    /// How long a look-up may take.
    pub timeout: Duration,
    /// How the bodies of records are written.
    pub compress: RecordCoding,
    /// How values of an application are named, read and written. `None`: larders keep records of their own there.
    pub values: Option<ValueSettings>,
}

impl Setting for Redis {
    fn shape() -> Shape {
        Shape::Section(RedisTable::doc)
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        match &node.value {
            Value::Table(table) => {
                let is_of_application = ["key", "format"].iter().any(|key| table.get(key).is_some());
                let read = RedisTable::read(node, at, reading)?;
                let RedisTable { server, key, format, near, timeout, compress, default_type, write } = read;
                if !is_of_application {
                    for name in OF_VALUES {
                        if let Some(said) = table.get(name) {
                            let at = At::Key(at, name);
                            let problem = reading.problem(
                                &said.place,
                                &at,
                                "it has no meaning without `key` or `format`",
                            );
                            reading.refuse(problem.hint(HINT));
                        }
                    }
                }
                if let Some(said) = table.get(OF_RECORDS).filter(|_| is_of_application) {
                    let at = At::Key(at, OF_RECORDS);
                    let problem =
                        reading.problem(&said.place, &at, "it has no meaning with `key` or `format`");
                    reading.refuse(problem.hint("values of an application are written as they are"));
                }
                let values = ValueSettings { key, format, near, timeout, default_type, write };
                let values = is_of_application.then_some(values);
                Some(Self { server: server.server()?, timeout, compress, values })
            }
            Value::Text(_) => {
                let RedisTable { timeout, compress, .. } = Fallback::Absent.value();
                Some(Self { server: RedisServer::read(node, at, reading)?, timeout, compress, values: None })
            }
            _ => {
                let hint = matches!(node.value, Value::List(_)).then(|| ONE_SERVER.to_owned());
                reading.refuse_value(node, at, "a table", hint);
                None
            }
        }
    }
}
