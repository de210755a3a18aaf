//! Every figure, declared once: its name, its unit and what it says.
//!
//! The reference of the API is made from this table. A debug build refuses a figure that is not here.

use super::SeriesName;

/// The declaration of a figure, or of one for each word.
#[derive(Clone, Copy, Debug)]
pub struct DeclaredFigure {
    /// What it is of; empty for the whole larder. Behind the kind of thing, what its names are.
    pub scope: &'static [&'static str],
    /// What is measured.
    pub measure: &'static str,
    /// What its words are, where it has words.
    pub words: Option<&'static str>,
    /// Of a rate: what a unit per second is. Of a level: the unit alone.
    pub unit: &'static str,
    /// One sentence.
    pub meaning: &'static str,
}

macro_rules! figures {
    ($([$($scope:literal),*] $measure:literal $(. $words:literal)? $unit:literal $meaning:literal;)*) => {
        /// All figures, in the order of the reference page.
        pub const FIGURES: &[DeclaredFigure] = &[$(DeclaredFigure {
            scope: &[$($scope),*],
            measure: $measure,
            words: figures!(@words $($words)?),
            unit: $unit,
            meaning: $meaning,
        }),*];
    };
    (@words) => { None };
    (@words $words:literal) => { Some($words) };
}

figures! {
    [] "requests" "requests per second" "Requests, those included that the parser refused.";
    [] "connections" "connections" "Client connections that are open.";
    [] "result" . "RESULT" "requests per second" "Requests by result: `memory`, `disk`, `file`, `remote`, `stale`, `joined`, `asked`, `own` and `refused`. They add up to `requests`.";
    [] "reason" . "REASON" "requests per second" "Requests that were no hit, by forward reason.";
    [] "before" . "WORD" "requests per second" "Requests for URLs under which nothing is stored, by what became of them.";
    [] "not_stored" . "REASON" "responses per second" "Responses that were not stored, by reason.";
    [] "status" . "CLASS" "responses per second" "Responses by class of status code, such as `2xx`.";
    [] "refused" . "REASON" "requests per second" "Requests that the parser refused, by reason.";
    [] "failure" . "WORD" "fetches per second" "Fetches that failed, by the word of the error.";
    [] "bytes_out" "bytes per second" "Bytes of bodies that were sent to clients.";
    [] "bytes_store" "bytes per second" "Those of them that came from a store.";
    [] "bytes_origin" "bytes per second" "Those of them that came from an origin.";
    [] "bytes_own" "bytes per second" "Those of them that are larder's own.";
    [] "bytes_in" "bytes per second" "Bytes of content that origins sent.";
    [] "origin_answers" "responses per second" "Final heads of origins.";
    [] "origin_seconds" "seconds per second" "How long they took together.";
    [] "evictions" "responses per second" "Responses that memory let go of, by all stores.";
    [] "reloads" . "RESULT" "reloads per second" "Reloads of the configuration: `ok` and `error`.";
    [] "tasks" "tasks" "Tasks of all workers.";
    [] "cpu" "cores" "Processor time of the process.";
    [] "memory" "bytes" "Resident memory of the process.";
    ["latency", "SERVED"] "p50" "seconds" "Median time to the end of a response: `hit`, `forwarded`, `local` and `all`. Over more than a second, the mean of the seconds' medians.";
    ["latency", "SERVED"] "p99" "seconds" "The same for the 99th percentile.";
    ["rule", "SITE", "RULE"] "result" . "RESULT" "requests per second" "Requests of a rule by result. The 64 busiest rules have figures; all others share those of the site and rule `other`.";
    ["rule", "SITE", "RULE"] "reason" . "REASON" "requests per second" "Its requests that were no hit, by forward reason.";
    ["rule", "SITE", "RULE"] "before" . "WORD" "requests per second" "Its requests for URLs under which nothing is stored, by what became of them.";
    ["rule", "SITE", "RULE"] "not_stored" . "REASON" "responses per second" "Its responses that were not stored, by reason.";
    ["rule", "SITE", "RULE"] "bytes_store" "bytes per second" "Bytes of its bodies that came from a store.";
    ["rule", "SITE", "RULE"] "bytes_origin" "bytes per second" "Bytes of its bodies that came from an origin.";
    ["rule", "SITE", "RULE"] "bytes_own" "bytes per second" "Bytes of its bodies that are larder's own.";
    ["rule", "SITE", "RULE"] "bytes_in" "bytes per second" "Bytes of content that origins sent for it.";
    ["rule", "SITE", "RULE"] "origin_answers" "responses per second" "Final heads of origins for it.";
    ["rule", "SITE", "RULE"] "origin_seconds" "seconds per second" "How long they took together.";
    ["store", "NAME"] "lookups" "requests per second" "Look-ups in a store.";
    ["store", "NAME"] "hits" "requests per second" "Those of them that were hits.";
    ["store", "NAME"] "reason" . "REASON" "requests per second" "Those that were not, by forward reason.";
    ["store", "NAME"] "stored" "responses per second" "Responses stored.";
    ["store", "NAME"] "evictions" . "REASON" "responses per second" "Responses that its memory let go of: for `room`, as one of too many `variants`, or `idle`.";
    ["store", "NAME"] "evicted_age" "seconds" "Mean age of the responses that its memory let go of for room.";
    ["store", "NAME"] "refused" . "REASON" "responses per second" "Responses for which its memory had no room.";
    ["store", "NAME"] "bytes" "bytes" "Bytes in its memory.";
    ["store", "NAME"] "objects" "responses" "Responses in its memory.";
    ["tier", "STORE", "DIRECTORY"] "bytes" "bytes" "Bytes on a disk, or in a directory of files.";
    ["tier", "STORE", "DIRECTORY"] "objects" "responses" "Responses there.";
    ["tier", "STORE", "DIRECTORY"] "queued" "bytes" "Bytes that wait to be written there.";
    ["tier", "STORE", "DIRECTORY"] "refused" . "REASON" "responses per second" "Responses that were not taken there, by reason.";
    ["origin", "NAME"] "requests" "fetches per second" "Fetches that ended with a final head or a failure.";
    ["origin", "NAME"] "answers" "fetches per second" "Those with a final head.";
    ["origin", "NAME"] "failures" "fetches per second" "Those without.";
    ["origin", "NAME"] "failure" . "WORD" "fetches per second" "The same, by the word of the error.";
    ["origin", "NAME"] "seconds" "seconds per second" "How long final heads took together.";
    ["origin", "NAME"] "bytes" "bytes per second" "Bytes of content that it sent.";
    ["origin", "NAME"] "in_flight" "requests" "Requests whose response has not ended.";
    ["origin", "NAME"] "queued" "requests" "Requests that wait for a place among those in flight.";
    ["origin", "NAME"] "connections" "connections" "Connections that are open, unused ones included.";
    ["origin", "NAME"] "p50" "seconds" "Median time to the final head. Over more than a second, the mean of the seconds' medians.";
    ["origin", "NAME"] "p99" "seconds" "The same for the 99th percentile.";
    ["server", "ORIGIN", "ADDRESS"] "requests" "requests per second" "Requests that one address of a server was given.";
    ["server", "ORIGIN", "ADDRESS"] "failures" "requests per second" "Those that it failed.";
    ["server", "ORIGIN", "ADDRESS"] "status" . "CLASS" "responses per second" "Its final heads by class of status code.";
    ["server", "ORIGIN", "ADDRESS"] "bytes" "bytes per second" "Bytes of content that it sent.";
}

impl DeclaredFigure {
    /// The name, with words in capitals for what differs.
    pub fn form(&self) -> String {
        let mut form = String::new();
        SeriesName { scope: self.scope, measure: self.measure, word: self.words }.write(&mut form);
        form
    }
}

/// Whether a figure is in the table.
pub(super) fn is_declared(name: &SeriesName<'_>) -> bool {
    FIGURES.iter().any(|figure| {
        figure.measure == name.measure
            && figure.words.is_some() == name.word.is_some()
            && figure.scope.len() == name.scope.len()
            && figure.scope.first() == name.scope.first()
    })
}
