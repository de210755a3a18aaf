//! Comparing what came with what a scenario states.
//!
//! In: an [`Expect`] and a response, or a [`Saw`] and what an origin recorded. Out: mismatches, all of them, never
//! only the first.

use std::collections::BTreeMap;

use super::cache_status;
use super::format::{BodyOf, Expect, Looser, PartOf, Saw, Want};
use super::report::Mismatch;
use crate::client::{End, Response};
use crate::multipart;
use crate::origin::Seen;
use crate::seeded;
use crate::template::{Context, expand};
use crate::wire::Fields;

/// Looks at one response.
pub(super) fn response(expect: &Expect, response: &Response, context: &Context<'_>) -> Vec<Mismatch> {
    let mut out = Vec::new();
    if let Some(statuses) = &expect.status {
        let statuses = statuses.as_slice();
        if !statuses.contains(&response.status) {
            out.push(Mismatch::new("status", format!("{statuses:?}"), response.status.to_string()));
        }
    }
    if let Some(reason) = &expect.reason
        && reason != &response.reason
    {
        out.push(Mismatch::new("reason", reason, &response.reason));
    }
    if let Some(version) = &expect.version
        && version != &response.version
    {
        out.push(Mismatch::new("version", version, &response.version));
    }
    let complete = response.end == End::Complete;
    if complete == expect.cut {
        let wanted = if expect.cut { "breaks off" } else { "complete" };
        out.push(Mismatch::new("end of the body", wanted, format!("{:?}", response.end)));
    }
    body(&expect.body, &expect.body_of, &response.body, "body", &mut out);
    if let Some(length) = expect.body_bytes
        && length != response.body.len() as u64
    {
        out.push(Mismatch::new("length of the body", length.to_string(), response.body.len().to_string()));
    }
    if let Some(part) = &expect.body_contains
        && crate::wire::find(&response.body, part.as_bytes()).is_none()
    {
        out.push(Mismatch::new("body", format!("... {part} ..."), shown(&response.body)));
    }
    if let Some(wanted) = &expect.multipart {
        out.extend(several(wanted, response, context));
    }
    fields(&expect.fields, &expect.absent, &response.fields, "", context, &mut out);
    fields(&expect.trailers, &expect.absent, &response.trailers, " among the trailers", context, &mut out);
    if let Some(wanted) = &expect.cache_status {
        let lines: Vec<&str> = response.fields.all("cache-status").collect();
        let found = (!lines.is_empty()).then(|| lines.join(", "));
        if !wanted.as_slice().iter().any(|wanted| cache_status::agrees(wanted, found.as_deref())) {
            let got = found.unwrap_or_else(|| "absent".to_owned());
            out.push(Mismatch::new("cache_status", wanted.as_slice().join("\n           or "), got));
        }
    }
    if let Some(interim) = &expect.interim {
        let found: Vec<u16> = response.interim.iter().map(|interim| interim.status).collect();
        if interim != &found {
            out.push(Mismatch::new("interim", format!("{interim:?}"), format!("{found:?}")));
        }
    }
    out
}

/// Looks at the parts of a multipart/byteranges.
fn several(wanted: &[PartOf], response: &Response, context: &Context<'_>) -> Vec<Mismatch> {
    let parts = match multipart::parts(response.fields.first("content-type"), &response.body) {
        Ok(parts) => parts,
        Err(why) => return vec![Mismatch::new("multipart", "well-formed", why)],
    };
    let mut out = Vec::new();
    if parts.len() != wanted.len() {
        out.push(Mismatch::new("number of parts", wanted.len().to_string(), parts.len().to_string()));
    }
    for (n, (wanted, part)) in wanted.iter().zip(&parts).enumerate() {
        let whose = format!(" of part {}", n + 1);
        fields(&wanted.fields, &wanted.absent, &part.fields, &whose, context, &mut out);
        body(&wanted.body, &wanted.body_of, &part.body, &format!("body{whose}"), &mut out);
    }
    out
}

/// Looks at what an origin received; `seen` is all of it.
pub(super) fn origin_saw(saw: &Saw, seen: &[Seen], context: &Context<'_>) -> Vec<Mismatch> {
    let mut out = Vec::new();
    let request = match saw.number {
        Some(number) => number.checked_sub(1).and_then(|at| seen.get(at)),
        None => seen.last(),
    };
    let Some(request) = request else {
        let wanted = saw.number.map_or("a request".to_owned(), |number| format!("request {number}"));
        return vec![Mismatch::new("origin saw", wanted, format!("{} requests", seen.len()))];
    };
    for (what, wanted, got) in
        [("method", &saw.method, &request.method), ("target", &saw.target, &request.target)]
    {
        if let Some(wanted) = wanted
            && wanted != got
        {
            out.push(Mismatch::new(format!("{what} that the origin saw"), wanted, got));
        }
    }
    fields(&saw.fields, &saw.absent, &request.fields, " that the origin saw", context, &mut out);
    let whose = " among the trailers that the origin saw";
    fields(&saw.trailers, &saw.absent_trailers, &request.trailers, whose, context, &mut out);
    body(&saw.body, &saw.body_of, &request.body, "body that the origin saw", &mut out);
    if let Some(complete) = saw.body_complete
        && complete != request.body_complete
    {
        out.push(Mismatch::new(
            "body that the origin saw is complete",
            complete.to_string(),
            request.body_complete.to_string(),
        ));
    }
    out
}

fn body(literal: &Option<String>, of: &Option<BodyOf>, got: &[u8], what: &str, out: &mut Vec<Mismatch>) {
    if let Some(wanted) = literal
        && wanted.as_bytes() != got
    {
        out.push(Mismatch::new(what, shown(wanted.as_bytes()), shown(got)));
    }
    if let Some(BodyOf { seed, first, bytes }) = of {
        let wanted = seeded::bytes_of(seed, *first, *bytes);
        if wanted != got {
            let differ = wanted.iter().zip(got).position(|(a, b)| a != b);
            let differ =
                differ.map_or("equal as far as they go".to_owned(), |at| format!("byte {at} differs"));
            let wanted = format!("{bytes} bytes of {seed} from {first}");
            out.push(Mismatch::new(what, wanted, format!("{} bytes, {differ}", got.len())));
        }
    }
}

fn shown(body: &[u8]) -> String {
    let short = body.get(..160).unwrap_or(body);
    let dots = if short.len() < body.len() { " ..." } else { "" };
    format!("{} bytes: {}{dots}", body.len(), short.escape_ascii())
}

fn fields(
    wanted: &BTreeMap<String, Want>,
    absent: &[String],
    got: &Fields,
    whose: &str,
    context: &Context<'_>,
    out: &mut Vec<Mismatch>,
) {
    for (name, want) in wanted {
        let lines: Vec<&str> = got.all(name).collect();
        let expected = match want {
            Want::Exactly(value) => {
                let value = expand(value, context);
                if lines == [value.as_str()] {
                    continue;
                }
                value
            }
            Want::Lines(values) => {
                if lines == values.iter().map(String::as_str).collect::<Vec<_>>() {
                    continue;
                }
                format!("{values:?}")
            }
            Want::Looser(looser) => match lines.first() {
                Some(line) if is_looser(looser, line) => continue,
                _ => format!("{looser:?}"),
            },
        };
        let found = if lines.is_empty() { "absent".to_owned() } else { lines.join(" | ") };
        out.push(Mismatch::new(format!("{name}{whose}"), expected, found));
    }
    for name in absent {
        let lines: Vec<&str> = got.all(name).collect();
        if !lines.is_empty() {
            out.push(Mismatch::new(format!("{name}{whose}"), "absent", lines.join(" | ")));
        }
    }
}

fn is_looser(looser: &Looser, line: &str) -> bool {
    looser.contains.as_ref().is_none_or(|part| line.contains(part.as_str()))
        && looser.matches.as_ref().is_none_or(|pattern| is_like(pattern, line))
        && looser.between.as_ref().is_none_or(|range| cache_status::within(range, line))
}

/// Whether `text` is `pattern`, in which each `*` stands for anything.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match text.split_once(part) {
            Some((_, after)) => text = after,
            None => return false,
        }
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, like) in [
            ("1.1 *", "1.1 larder", true),
            ("*larder", "1.1 larder", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c", false),
            ("ab", "abc", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(is_like(pattern, text), like, "{pattern} {text}");
        }
    }
}
