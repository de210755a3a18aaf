//! Words of the `detail` in `Cache-Status` that are neither failures of an origin nor reasons not to store.
//!
//! In: the places that say them. Out: their words. Where a place has no constant for its word, the word stands here a second time.

use larder_cache::{StaleReason, ValidateReason};

use super::word::Word;
use crate::detail;
use crate::failure::Failure;
use crate::versions::NotKnown;

/// All of them, each once.
pub(super) fn own() -> Vec<Word> {
    let mut words: Vec<_> = StaleReason::ALL
        .into_iter()
        .map(|reason| Word::new(reason.token(), reason.sentence()).section(reason.section()))
        .collect();
    words.extend(
        [NotKnown::Unknown, NotKnown::Absent]
            .map(|why| Word::new(why.token(), why.sentence()).section("configuration")),
    );
    let floor = ValidateReason::BelowFloor;
    words.push(Word::new(floor.token(), floor.sentence()));
    words.extend(failures());
    words.extend(news());
    words
}

/// What a client is told where the answer is larder's own.
fn failures() -> Vec<Word> {
    let word = |failure: Failure, sentence| Word::new(failure.detail, sentence);
    vec![
        word(Failure::FETCH_LOST, "The fetch ended without a result, also when it was tried again."),
        word(Failure::BODY_BROKEN, "The origin's content broke off before the client had a byte of it."),
        word(
            Failure::TEMPLATE_CODING,
            "The template came in a content coding that is not decoded, or in several.",
        )
        .helps("Send templates as they are, or as gzip, deflate, br or zstd."),
        word(
            Failure::TEMPLATE_PART,
            "The origin sent a part of a template, although all of it was asked for.",
        ),
        word(Failure::UNASKED_NOT_MODIFIED, "The origin answered 304 to a request without conditions.")
            .section("RFC 9110 15.4.5"),
        word(Failure::WAITERS_FULL, "As many clients wait for this fetch as may."),
        word(Failure::ONLY_IF_CACHED, "The client wanted a stored response alone, and there is none.")
            .section("RFC 9111 5.2.1.7"),
        word(
            Failure::FRAGMENT_FAILED,
            "A fragment that the page needs has failed, and nothing stands in for it.",
        )
        .helps("Name a fallback in the template, or set on_error = \"omit\"."),
        word(Failure::PAGE_TOO_LARGE, "The page is longer than page_size."),
        word(Failure::TEMPLATE_INVALID, "The template has a problem, and its rule says strict = true."),
        word(Failure::UNKNOWN_HOST, "No site has this host.")
            .section("RFC 9110 15.5.20")
            .helps("Add the host to the hosts of a site."),
        word(Failure::HTTPS, "The site is served over TLS alone, and the request came in clear text.")
            .section("RFC 9110 15.4.9")
            .helps("Set redirect_https = false to serve both."),
        word(
            Failure::TLS_POLICY,
            "The connection was accepted under other rules for client certificates than the site's.",
        )
        .section("RFC 9110 15.5.20")
        .helps("The client connects anew, and asks for the site's own name."),
        word(Failure::CERTIFICATE_PENDING, "The site's first certificate is still being ordered.")
            .helps("larder certs tells what the authority said last."),
        word(Failure::CLIMBING_PATH, "The path leads above the root."),
        word(Failure::LOOP, "The request has passed through this larder too often.")
            .section("RFC 9110 7.6.3")
            .helps("The origin leads back to larder: correct servers."),
        word(Failure::NO_SUCH_FILE, "The site has files alone, and not this one."),
    ]
}

/// What is no failure.
fn news() -> Vec<Word> {
    vec![
        Word::new(
            detail::ACME_PROOF,
            "An authority of certificates has looked for a proof that the host is larder's.",
        ),
        Word::new(detail::BY_HAND, "It is a plain file that was put there or changed by hand."),
        Word::new(detail::REMOTE, "Another larder has fetched it, and it came from Redis for this request."),
        Word::new(detail::ELSEWHERE, "Another larder was fetching it, and this request waited for that."),
        Word::new(
            detail::NO_LEASE,
            "This larder does not hear from its fleet, so the origin was asked first.",
        ),
        Word::new(detail::ASSEMBLED, "It is a page that was put together of a template and its fragments."),
        Word::new(
            detail::COOKIES_WITHHELD,
            "It is stored without the cookies, which this client alone is sent.",
        ),
        Word::new(
            detail::UPGRADE_IS_OFF,
            "It is a WebSocket handshake, and the site does not pass those on.",
        )
        .helps("Set websocket = true in the site."),
        Word::new(
            detail::COLLAPSE_WAIT,
            "It waited collapse_wait for the fetch of another request, then went alone.",
        )
        .section("configuration"),
        Word::new("upgrade", "It is a WebSocket handshake, which goes to the origin.")
            .section("RFC 6455 4.1"),
        Word::new("request-body", "It is a GET with content, which goes to the origin.")
            .section("RFC 9110 9.3.1"),
        Word::new(
            "query-too-large",
            "It is a QUERY with more than 64 KiB of content, which goes to the origin.",
        ),
        Word::new("static-file", "It is a file below the root of the site."),
        Word::new("static-directory", "It was redirected to the path of a directory."),
        Word::new("purged", "It was a purge, and took out what it names."),
        Word::new("purge-bad", "It was a purge that cannot be read."),
        Word::new("purge-refused", "It was a purge by a client that may not purge.")
            .helps("The key purge of the site says who may."),
        Word::new("purge-busy", "Too many purges are under way."),
        Word::new("purge-not-held", "The purge is in force, but a disk has not confirmed it."),
        Word::new("purge-incomplete", "The purge is in force here, but not at every member of the fleet."),
    ]
}
