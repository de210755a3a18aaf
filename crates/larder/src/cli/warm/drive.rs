//! The run: the list is worked off by clients that each keep one connection.
//!
//! In: URLs, and how to ask for them. Out: a [`WarmReport`], also where Ctrl-C ends the run early. Requests begin in the order of the
//! list, at most `at_once` of them are under way, and two begin no closer than the rate allows. Both limits are for the run and not
//! for each host, because several hosts may be one origin. Bodies are read and dropped. What takes longer than [`WHOLE_TIME`] is
//! given up.

use std::sync::Arc;

use http::header::{ACCEPT, USER_AGENT};
use http::{HeaderMap, HeaderValue};
use larder_http::fields::cache_status::NearestCache;
use parking_lot::Mutex;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

use super::client::{Unfetched, WHOLE_TIME, WarmClient, next_piece};
use super::counts::{WarmAnswer, WarmCounts};
use super::progress::{ShownAs, WarmProgress};
use super::rate::Interval;
use super::report::WarmReport;
use super::through::ListenerAddress;
use super::url::WarmUrl;
use crate::cli::signals::interrupted;

/// Bytes of a body that are read. larder stores the rest of a longer one without this client.
const BODY_BYTES_MAX: u64 = 1 << 30;

/// What current browsers all accept. A response that larder stores for it answers every client that accepts its coding, so one
/// request fills the copy of all; with `zstd` in it, that copy might be one that some browsers do not accept.
pub(super) const ACCEPT_ENCODING: &str = "gzip, br";

/// How the requests name their client.
const NAME: HeaderValue = HeaderValue::from_static(concat!("larder-warm/", env!("CARGO_PKG_VERSION")));

/// How to ask.
#[derive(Clone, Debug)]
pub(in crate::cli) struct WarmOptions {
    /// Host and port of larder's listener.
    pub(in crate::cli) address: String,
    pub(in crate::cli) at_once: usize,
    pub(in crate::cli) interval: Option<Interval>,
    pub(in crate::cli) accept_encoding: HeaderValue,
    /// Beside Host, Accept-Encoding and the scheme.
    pub(in crate::cli) fields: HeaderMap,
    pub(in crate::cli) shown: ShownAs,
}

impl WarmOptions {
    /// The usual ones.
    pub(in crate::cli) fn new(listener: &ListenerAddress) -> Self {
        let fields = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("*/*")), (USER_AGENT, NAME)]);
        Self {
            address: listener.address.clone(),
            at_once: 8,
            interval: None,
            accept_encoding: HeaderValue::from_static(ACCEPT_ENCODING),
            fields,
            shown: ShownAs::on_stderr(),
        }
    }
}

struct Run {
    urls: Vec<WarmUrl>,
    options: WarmOptions,
    /// Never held across a wait.
    state: Mutex<RunState>,
}

struct RunState {
    /// The next URL of the list.
    next: usize,
    /// When the next request may begin.
    due: Instant,
    counts: WarmCounts,
}

/// Asks for every URL once. Needs a runtime; takes over SIGINT.
///
/// # Cancel safety
/// Dropping it ends every request.
pub(in crate::cli) async fn warm(urls: Vec<WarmUrl>, options: WarmOptions) -> WarmReport {
    let began = Instant::now();
    let clients = options.at_once.min(urls.len());
    let mut progress = WarmProgress::new(options.shown, urls.len());
    let state = Mutex::new(RunState { next: 0, due: began, counts: WarmCounts::default() });
    let run = Arc::new(Run { urls, options, state });
    let mut working = JoinSet::new();
    for _ in 0..clients {
        working.spawn(work(Arc::clone(&run)));
    }
    let interrupt = interrupted();
    tokio::pin!(interrupt);
    let mut is_interrupted = false;
    while !working.is_empty() && !is_interrupted {
        tokio::select! {
            () = &mut interrupt => is_interrupted = true,
            Some(ended) = working.join_next() => ended.unwrap_or_else(resume_panic),
            () = progress.due() => progress.show(&run.state.lock().counts, began.elapsed()),
        }
    }
    working.abort_all();
    let counts = run.state.lock().counts.clone();
    progress.end(&counts, began.elapsed());
    WarmReport::new(&run.urls, counts, began.elapsed(), is_interrupted)
}

fn resume_panic(error: JoinError) {
    if let Ok(panic) = error.try_into_panic() {
        std::panic::resume_unwind(panic);
    }
}

impl Run {
    /// The next URL with its place in the list, and when to ask for it.
    fn take(&self) -> Option<(usize, &WarmUrl, Instant)> {
        let mut state = self.state.lock();
        let place = state.next;
        let url = self.urls.get(place)?;
        state.next += 1;
        let now = Instant::now();
        let Some(interval) = self.options.interval else { return Some((place, url, now)) };
        let (at, due) = interval.take(state.due, now);
        state.due = due;
        Some((place, url, at))
    }
}

/// Works until the list is at its end.
async fn work(run: Arc<Run>) {
    let mut client = WarmClient::new(run.options.address.clone(), run.options.fields.clone());
    while let Some((place, url, at)) = run.take() {
        if run.options.interval.is_some() {
            sleep_until(at).await;
        }
        let began = Instant::now();
        let asking = answer(&mut client, url, &run.options.accept_encoding);
        let answered = timeout(WHOLE_TIME, asking).await.unwrap_or(Err(Unfetched::Endless(WHOLE_TIME)));
        if answered.is_err() {
            client.forget();
        }
        run.state.lock().counts.count(place, began.elapsed(), answered);
    }
}

/// One answer, read to its end.
async fn answer(
    client: &mut WarmClient,
    url: &WarmUrl,
    accept_encoding: &HeaderValue,
) -> Result<WarmAnswer, Unfetched> {
    let response = client.ask(url, accept_encoding).await?;
    let (status, cache) = (response.status(), NearestCache::read(response.headers()));
    let (mut body, mut body_bytes) = (response.into_body(), 0);
    while let Some(piece) = next_piece(&mut body).await? {
        body_bytes += piece.len() as u64;
        if body_bytes > BODY_BYTES_MAX {
            client.forget();
            break;
        }
    }
    Ok(WarmAnswer { status, cache, body_bytes })
}
