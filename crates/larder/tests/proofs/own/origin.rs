//! What the origin of these runs says: kinds of URLs, and whom each of them may be shown to.
//!
//! In: a request with a tag. Out: a script, which puts the tag into all that the origin makes for that request; and from the
//! script's own words alone, who else may see it. Content in a coding says so in its text as well, so that an answer shows
//! whether its fields and its content belong together.

use larder_testkit::origin::{Answer, Interim, PathScript};

/// A kind of URL: what the origin says with its responses, and what that allows.
pub(super) struct Path {
    pub(super) name: &'static str,
    /// Lines of a whole response; `{field:x-tag}` is whose it is.
    fields: &'static [&'static str],
    /// Who may see what was made for somebody else.
    pub(super) shared: Shared,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shared {
    /// The origin says for how long others may have it.
    ByWord,
    /// It lives by larder's own settings or by a guess: made for strangers, and seen by strangers.
    AmongStrangers,
    /// It sets a cookie that may be somebody's, and does not say that it is for all.
    Never,
}

const SID: &str = "Set-Cookie: connect.sid={field:x-tag}; Path=/; HttpOnly";
const LANG: &str = "Set-Cookie: lang=de";
const ETAG: &str = "ETag: \"v\"";
const FOR: &str = "X-For: {field:x-tag}";

/// With Vary: every client that takes gzip gets it, and nobody else.
pub(super) const CODED: &str = "coded";
/// Without Vary, and with one tag for both forms.
const CODED_UNSAID: &str = "coded-unsaid";
/// What each Accept-Encoding of the clients takes.
pub(super) const TAKE_GZIP: [(&str, bool); 3] = [("gzip", true), ("gzip, br", true), ("identity", false)];
/// How content begins that is in a coding.
pub(super) const IN_GZIP: &str = "in gzip, ";

pub(super) const PATHS: [Path; 14] = [
    Path {
        name: "public",
        fields: &["Cache-Control: public, max-age=5", ETAG, SID, LANG, FOR],
        shared: Shared::ByWord,
    },
    Path {
        name: "express",
        fields: &["Cache-Control: public, max-age=0", ETAG, SID, FOR],
        shared: Shared::ByWord,
    },
    Path {
        name: "behind",
        fields: &[
            "Cache-Control: public, max-age=2, stale-while-revalidate=30, stale-if-error=60",
            ETAG,
            SID,
        ],
        shared: Shared::ByWord,
    },
    Path { name: "smaxage", fields: &["Cache-Control: s-maxage=4", SID, FOR], shared: Shared::ByWord },
    Path { name: "targeted", fields: &["CDN-Cache-Control: max-age=4", ETAG, SID], shared: Shared::ByWord },
    Path {
        name: "named",
        fields: &[
            "Cache-Control: max-age=5, no-cache=\"set-cookie\", private=\"x-own\"",
            ETAG,
            SID,
            "X-Own: {field:x-tag}",
        ],
        shared: Shared::ByWord,
    },
    Path { name: "session", fields: &["Cache-Control: max-age=5", ETAG, SID, FOR], shared: Shared::Never },
    Path {
        name: "value",
        fields: &["Cache-Control: max-age=5", "Set-Cookie: seen={field:x-tag}", FOR],
        shared: Shared::Never,
    },
    Path { name: "guess", fields: &["Last-Modified: {start-10d}", FOR], shared: Shared::AmongStrangers },
    Path { name: "ttl", fields: &[ETAG, FOR], shared: Shared::AmongStrangers },
    Path {
        name: "ttl-public",
        fields: &["Cache-Control: public", ETAG, SID, FOR],
        shared: Shared::AmongStrangers,
    },
    Path {
        name: "override",
        fields: &["Cache-Control: max-age=60", ETAG, FOR],
        shared: Shared::AmongStrangers,
    },
    Path {
        name: CODED,
        fields: &["Cache-Control: public, max-age=5", "Vary: Accept-Encoding", SID, FOR],
        shared: Shared::ByWord,
    },
    // One tag for all forms, and no word of what they differ by.
    Path {
        name: CODED_UNSAID,
        fields: &["Cache-Control: public, max-age=3", ETAG, SID, FOR],
        shared: Shared::ByWord,
    },
];

impl Path {
    /// Whether what was made for one client may be seen by another.
    pub(super) fn may_show(&self, made_for_stranger: bool, seen_by_stranger: bool) -> bool {
        match self.shared {
            Shared::ByWord => true,
            Shared::AmongStrangers => made_for_stranger && seen_by_stranger,
            Shared::Never => false,
        }
    }

    /// Whether its content has several forms.
    pub(super) fn is_coded(&self) -> bool {
        [CODED, CODED_UNSAID].contains(&self.name)
    }

    /// What the origin answers.
    pub(super) fn script(&self) -> PathScript {
        let failed = Answer { when: lines(&["x-fail: yes"]), status: Some(503), ..Answer::default() };
        let mut answer = vec![failed];
        if self.is_coded() {
            let takers = TAKE_GZIP.iter().filter(|(_, takes)| *takes);
            answer.extend(takers.flat_map(|(said, _)| self.coded_for(&format!("accept-encoding: {said}"))));
        }
        answer.push(self.confirmed(&[]));
        answer.push(self.whole(&[], ""));
        PathScript::new(&format!("/{}/*", self.name), answer)
    }

    fn whole(&self, more: &[&str], begins: &str) -> Answer {
        let interim = || Interim {
            status: 103,
            hold: None,
            fields: lines(&["Link: </a.css>", "Set-Cookie: connect.sid={field:x-tag}; HttpOnly"]),
        };
        Answer {
            fields: lines(&[self.fields, more].concat()),
            template: Some(format!("{begins}made for {{field:x-tag}}.")),
            interim: if self.name == "public" { vec![interim()] } else { Vec::new() },
            ranges: self.name == "behind",
            // Long enough for others to join the fetch.
            delay: Some("1ms".to_owned()),
            ..Answer::default()
        }
    }

    fn confirmed(&self, more: &[&str]) -> Answer {
        let by = if self.name == "guess" { "if-modified-since" } else { "if-none-match" };
        Answer {
            when: lines(&[by]),
            status: Some(304),
            fields: lines(&[self.fields, more].concat()),
            delay: Some("1ms".to_owned()),
            ..Answer::default()
        }
    }

    /// The answers to those who take gzip. A 304 says what the whole would have said.
    fn coded_for(&self, takes: &str) -> [Answer; 2] {
        let coding = ["Content-Encoding: gzip"];
        let mut both = [self.confirmed(&coding), self.whole(&coding, IN_GZIP)];
        both.iter_mut().for_each(|answer| answer.when.push(takes.to_owned()));
        both
    }
}

fn lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}
