//! Whether a run counts: right answers only, over connections that were kept, with the machine's cores to itself.
//!
//! In: what the load tool brought, what curl saw before and after, what the origin and the kernel counted. Out: nothing,
//! or why the run is refused. Load tools look at hardly anything, so the bytes that came back have to be those of the
//! answer that was looked at: another status, or another head, has another length.
//! Deliberately absent: looking into each answer of a run, which would make the load the limit.

use anyhow::{Result, ensure};

use super::contender::Protocol;
use super::curl::Answer;
use super::drive::{Driven, Load};
use super::machine::Passed;

/// By so many bytes heads of one answer differ: digits of ages, of lifetimes and of a server's own numbers.
const HEAD_VARIES_BYTES: f64 = 16.0;
/// Chunks of an answer over HTTP/1, and frames and fields of one over HTTP/2, beyond the body and at most.
const FRAMES_SHARE: f64 = 0.02;
const FRAMES_BYTES: f64 = 64.0;
/// Connections that may be opened beside those of the load: the tool tries the address, an origin is checked.
const OPENED_BESIDE: f64 = 64.0;
/// A connection that is kept answers at least this many requests.
const REQUESTS_KEPT_MIN: f64 = 2000.0;
/// A hypervisor that took more of a core has been part of what was measured.
pub(super) const STEAL_PERCENT_MAX: f64 = 2.0;

/// How often the origin may be asked during a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OriginAsked {
    /// Every answer is a hit.
    Never,
    /// Every answer is a miss: once for each.
    Each,
    /// Now and then; a target judges how often.
    Sometimes,
}

/// That what was received is what the answers have which were looked at before and after the run.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(super) fn right_bytes(driven: &Driven, load: &Load, looked_at: [&Answer; 2]) -> Result<()> {
    let (least, most) = match load.protocol() {
        Protocol::Http1 => {
            let sizes = looked_at.map(|answer| (answer.head_bytes + answer.body.len()) as f64);
            let most = looked_at.map(|answer| match answer.is_chunked {
                true => answer.body.len() as f64 * FRAMES_SHARE + FRAMES_BYTES,
                false => 0.0,
            });
            let most = (sizes[0] + most[0]).max(sizes[1] + most[1]);
            (sizes[0].min(sizes[1]) - HEAD_VARIES_BYTES, most + HEAD_VARIES_BYTES)
        }
        // Fields are compressed, by what has been sent before on the same connection.
        Protocol::Http2 => {
            let (head, body) = (looked_at[1].head_bytes as f64, looked_at[1].body.len() as f64);
            (body, body * (1.0 + FRAMES_SHARE) + head + FRAMES_BYTES)
        }
    };
    // What was still on its way when the time was up is received as well, and is no request.
    let cut_off = load.in_flight_max() as f64 * most / driven.requests;
    let received = driven.bytes_per_request;
    ensure!(
        received >= least && received <= most + cut_off,
        "{received:.0} bytes for an answer that has {least:.0} to {most:.0}"
    );
    Ok(())
}

/// That the origin was asked as often as hits or misses have it.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(super) fn right_kind(allowed: OriginAsked, asked: u64, answers: f64, load: &Load) -> Result<()> {
    match allowed {
        OriginAsked::Never => {
            ensure!(asked == 0, "the origin was asked {asked} times during the run: not all were hits");
        }
        OriginAsked::Each => {
            let asked = asked as f64;
            ensure!(
                asked >= answers,
                "the origin was asked {asked} times for {answers} answers: not all were misses"
            );
            let most = answers + load.in_flight_max() as f64;
            ensure!(asked <= most, "the origin was asked {asked} times for {answers} answers: some twice");
        }
        OriginAsked::Sometimes => {}
    }
    Ok(())
}

/// That connections were kept: wrk opens another for one that was closed between two answers, and says nothing. On the
/// way to the origin of misses there may be as many.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(super) fn connections_kept(
    passed: &Passed,
    load: &Load,
    allowed: OriginAsked,
    answers: f64,
) -> Result<()> {
    let Some(connections) = load.connections_kept() else {
        return Ok(());
    };
    let sides = if allowed == OriginAsked::Each { 2.0 } else { 1.0 };
    let most = sides * (connections as f64 + answers / REQUESTS_KEPT_MIN) + OPENED_BESIDE;
    ensure!(
        passed.opened as f64 <= most,
        "{} connections were opened during the run, not {connections}: they are not kept, or another program of this \
         machine opens them",
        passed.opened
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: Load = Load::Wrk { connections: 64, script: None };
    const HTTP2: Load = Load::H2load { protocol: Protocol::Http2, connections: 16, streams: 10, rate: None };

    fn driven(bytes_per_request: f64) -> Driven {
        Driven {
            requests: 100_000.0,
            requests_per_s: 1000.0,
            p50_us: 1.0,
            p99_us: 1.0,
            p999_us: None,
            bytes_per_request,
            load_percent: 50.0,
        }
    }

    fn answer(head_bytes: usize, body: usize) -> Answer {
        Answer { status: 200, body: vec![0; body], head_bytes, is_chunked: false }
    }

    #[test]
    fn an_answer_of_another_length_refuses_a_run() {
        let check = |load: &Load, body: usize, received: f64, right: bool| {
            let looked_at = [&answer(260, body), &answer(262, body)];
            assert_eq!(
                right_bytes(&driven(received), load, looked_at).is_ok(),
                right,
                "{received} of {body}"
            );
        };
        check(&KEPT, 8357, 8617.0, true);
        check(&KEPT, 8357, 8635.0, true);
        // A body of another page, an error of some hundred bytes, no body at all, a head with a field more.
        check(&KEPT, 8357, 57_300.0, false);
        check(&KEPT, 8357, 440.0, false);
        check(&KEPT, 8357, 260.0, false);
        check(&KEPT, 134, 430.0, false);
        check(&KEPT, 0, 394.0, false);
        check(&HTTP2, 134, 180.0, true);
        check(&HTTP2, 134, 30.0, false);
        check(&HTTP2, 134, 600.0, false);
        check(&HTTP2, 8357, 8400.0, true);
    }

    #[test]
    fn chunks_are_longer_than_their_content() {
        let chunked = Answer { is_chunked: true, ..answer(260, 9300) };
        for (received, right) in [(9625.0, true), (9560.0, true), (10_400.0, false), (8000.0, false)] {
            assert_eq!(
                right_bytes(&driven(received), &KEPT, [&chunked, &chunked]).is_ok(),
                right,
                "{received}"
            );
        }
    }

    #[test]
    fn a_miss_among_hits_and_a_hit_among_misses_refuse_a_run() {
        let check = |allowed, asked, right: bool| {
            assert_eq!(right_kind(allowed, asked, 1000.0, &KEPT).is_ok(), right, "{asked}");
        };
        check(OriginAsked::Never, 0, true);
        check(OriginAsked::Never, 1, false);
        check(OriginAsked::Each, 1000, true);
        check(OriginAsked::Each, 1064, true);
        check(OriginAsked::Each, 1065, false);
        check(OriginAsked::Each, 999, false);
        check(OriginAsked::Sometimes, 30, true);
    }

    #[test]
    fn connections_that_are_not_kept_refuse_a_run() {
        let check = |load: &Load, allowed, opened, right: bool| {
            let passed = Passed { steal_percent: 0.0, opened };
            assert_eq!(connections_kept(&passed, load, allowed, 500_000.0).is_ok(), right, "{opened}");
        };
        check(&KEPT, OriginAsked::Never, 65, true);
        check(&KEPT, OriginAsked::Never, 370, true);
        // As with a limit of 1000 requests for each.
        check(&KEPT, OriginAsked::Never, 564, false);
        check(&KEPT, OriginAsked::Each, 564, true);
        check(&KEPT, OriginAsked::Each, 1064, false);
        check(&Load::Ab { connections: 64 }, OriginAsked::Never, 500_000, true);
    }
}
