//! Pages from fragments on the binary: whose they are, and what becomes of them when their origin or their client goes.

mod faults;
mod left;
mod visitors;

use larder_testkit::origin::Answer;

use crate::support::{Metrics, Process, answer_of};

/// A template in a language; `fields` beside those of the language.
fn template(language: &str, fields: &[&str], text: &str) -> Answer {
    let surrogate = format!("Surrogate-Control: content=\"{language}/1.0\"");
    let fields = [&["Content-Type: text/html", surrogate.as_str()][..], fields].concat();
    part(&fields, text)
}

fn ssi(text: &str) -> Answer {
    template("SSI", &["Cache-Control: max-age=3600"], text)
}

fn esi(text: &str) -> Answer {
    template("ESI", &["Cache-Control: max-age=3600"], text)
}

/// A part with this content.
fn part(fields: &[&str], text: impl Into<String>) -> Answer {
    Answer { body: Some(text.into()), bytes: None, ..answer_of(fields, 0) }
}

/// How many pages came about in this way.
fn pages(metrics: &Metrics, how: &str) -> u64 {
    let label = format!("how=\"{how}\"");
    let samples = metrics.samples().into_iter();
    let of_pages =
        samples.filter(|(name, _)| name.starts_with("larder_pages_total{") && name.contains(&label));
    of_pages.map(|(_, count)| count as u64).sum()
}

/// Bytes that count against the stores.
async fn stored_bytes(larder: &Process) -> u64 {
    larder.metrics().await.sum("larder_cache_bytes")
}
