//! The files of the dashboard, which are built in: at `/` for browsers, and below `/ui/`.
//!
//! In: a path below `/ui/`, and the entity tag that a browser has. Out: the file with its type and its tag, or 304. A browser asks each
//! time (`no-cache`), so that a page and its modules are of one version. A debug build reads the files from the source tree where that is there,
//! so that an edit shows on reload. They hold no data, so no token is needed for them.
//! Deliberately absent: compression and names with hashes. All files together are small, and come from near.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use larder_http::message::Response;

use crate::answer::{HTML, content};

/// The page itself.
const PAGE: &str = "index.html";

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const PICTURE: &str = "image/svg+xml";
const PLAIN: &str = "text/plain; charset=utf-8";

struct Asset {
    /// Below `/ui/`, and below the folder of the sources.
    name: &'static str,
    form: &'static str,
    bytes: &'static [u8],
}

macro_rules! assets {
    ($($form:ident: $($name:literal)*;)*) => {
        &[$($(Asset { name: $name, form: $form, bytes: include_bytes!(concat!("../ui/", $name)) },)*)*]
    };
}

/// Every file.
static ASSETS: &[Asset] = assets! {
    HTML: "index.html";
    STYLE: "narrow.css" "pages.css" "pictures.css" "style.css" "vendor/uplot.css";
    PICTURE: "icon.svg";
    PLAIN: "vendor/LICENSE-htm" "vendor/LICENSE-preact" "vendor/LICENSE-uplot" "vendor/SHA256SUMS";
    SCRIPT:
        "account.js" "api.js" "app.js" "format.js" "past.js" "state.js" "words.js"
        "pages/config.js" "pages/errors.js" "pages/origins.js" "pages/overview.js" "pages/requests.js" "pages/rules.js" "pages/stores.js" "pages/url.js" "pages/why.js"
        "parts/bar.js" "parts/below.js" "parts/boundary.js" "parts/cause.js" "parts/dialog.js" "parts/evicted.js" "parts/explained.js" "parts/filter.js" "parts/glance.js" "parts/head.js" "parts/heat.js" "parts/later.js" "parts/notices.js" "parts/picture.js" "parts/purge.js" "parts/river.js" "parts/series.js" "parts/servers.js" "parts/spark.js" "parts/staircase.js" "parts/table.js" "parts/text.js" "parts/timeline.js" "parts/top.js" "parts/traffic.js" "parts/waterfall.js" "parts/window.js"
        "vendor/htm-preact.js" "vendor/htm.js" "vendor/preact-hooks.js" "vendor/preact.js" "vendor/uplot.js";
};

impl Asset {
    fn named(name: &str) -> Option<&'static Self> {
        ASSETS.iter().find(|asset| asset.name == name)
    }

    /// What is built in, or in a debug build what lies in the source tree now.
    fn content(&self) -> Cow<'static, [u8]> {
        let now = cfg!(debug_assertions)
            .then(|| std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/ui/").to_owned() + self.name));
        match now {
            Some(Ok(bytes)) => Cow::Owned(bytes),
            _ => Cow::Borrowed(self.bytes),
        }
    }

    fn answer(&self, fields: &HeaderMap) -> Response {
        let bytes = self.content();
        let tag = tag(&bytes);
        let has_it = fields.get_all(IF_NONE_MATCH).iter().any(|value| names(value.as_bytes(), &tag));
        let mut response = match (has_it, bytes) {
            (true, _) => content(StatusCode::NOT_MODIFIED, self.form, Bytes::new()),
            (false, Cow::Borrowed(bytes)) => content(StatusCode::OK, self.form, bytes),
            (false, Cow::Owned(bytes)) => content(StatusCode::OK, self.form, bytes),
        };
        let head = &mut response.head.fields;
        if has_it {
            head.remove(CONTENT_TYPE);
        }
        head.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if let Ok(tag) = HeaderValue::try_from(tag) {
            head.insert(ETAG, tag);
        }
        response
    }
}

/// The file at a path below `/ui/`.
pub(crate) fn file(path: &str, fields: &HeaderMap) -> Option<Response> {
    let asset = Asset::named(path.strip_prefix("/ui/")?)?;
    Some(asset.answer(fields))
}

/// The page, for clients that take HTML at `/`.
pub(crate) fn page(fields: &HeaderMap) -> Option<Response> {
    let mut response = Asset::named(PAGE)?.answer(fields);
    // Others are given a list there.
    response.head.fields.insert(VARY, HeaderValue::from_static("accept"));
    Some(response)
}

/// Names content for browsers that have it. Nobody gains by two files with one tag, so it need not be a strong hash.
fn tag(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    format!("\"{:016x}-{:x}\"", hasher.finish(), bytes.len())
}

/// Whether a value of If-None-Match has the tag, compared weakly (RFC 9110 13.1.2).
fn names(value: &[u8], tag: &str) -> bool {
    let mut tags = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    tags.any(|one| one == b"*" || one.strip_prefix(b"W/").unwrap_or(one) == tag.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/ui");

    /// What would make text into script or HTML, or load something from elsewhere.
    const FORBIDDEN: [&str; 13] = [
        "innerHTML",
        "InnerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "eval(",
        "new Function",
        "document.write",
        "src=\"http",
        "href=\"http",
        "from 'http",
        "import('http",
        "url(http",
        " style=\"",
    ];

    fn files(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => files(&path, found),
                false => found.push(path),
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_built_in_and_nothing_else() {
        let mut found = Vec::new();
        files(Path::new(FOLDER), &mut found);
        let folder: BTreeSet<_> =
            found.iter().map(|path| path.strip_prefix(FOLDER).unwrap().to_str().unwrap()).collect();
        let table: BTreeSet<_> = ASSETS.iter().map(|asset| asset.name).collect();
        assert_eq!(folder, table);
        assert_eq!(table.len(), ASSETS.len(), "a name stands twice");
    }

    #[test]
    fn nothing_makes_script_of_text_and_nothing_comes_from_elsewhere() {
        // What is vendored is compared with its packages, and held by the policy.
        for asset in ASSETS.iter().filter(|asset| !asset.name.starts_with("vendor/")) {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            for word in FORBIDDEN {
                assert!(!text.contains(word), "{}: {word}", asset.name);
            }
        }
        let (page, script) =
            (Asset::named(PAGE).unwrap(), "<script type=\"module\" src=\"/ui/app.js\"></script>");
        let text = std::str::from_utf8(page.bytes).unwrap();
        assert!(text.contains(script));
        assert_eq!(text.matches("<script").count(), 1);
        // Else a browser would find the modules of the first page one after the other, or wait for those of other pages.
        let preloaded: BTreeSet<_> = text
            .split("<link rel=\"modulepreload\" href=\"/ui/")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().to_owned())
            .collect();
        let mut needed = BTreeSet::new();
        needs("app.js", &mut needed);
        needed.remove("app.js");
        assert_eq!(preloaded, needed);
        assert!(!text.contains("<style"));
    }

    /// What a module imports, as names of files: what it cannot do without, or what it may load later.
    fn imports(name: &str, is_later: bool) -> Vec<String> {
        let text = std::str::from_utf8(Asset::named(name).unwrap().bytes).unwrap();
        let folder = Path::new(name).parent().unwrap();
        let code = text.lines().filter(|line| line.contains("import") || line.contains("export"));
        let word = if is_later { "import(" } else { "from" };
        let named = code.flat_map(|line| line.split(word).skip(1)).filter_map(|rest| {
            let rest = rest.trim_start();
            let quote = rest.chars().next().filter(|first| matches!(first, '\'' | '"'))?;
            rest[1..].split(quote).next()
        });
        let place = |named: &str| {
            let mut place = PathBuf::new();
            for part in folder.join(named).components() {
                match part {
                    std::path::Component::ParentDir => assert!(place.pop(), "{name}: {named}"),
                    std::path::Component::Normal(part) => place.push(part),
                    _ => {}
                }
            }
            place.to_str().unwrap().to_owned()
        };
        named.map(place).collect()
    }

    /// A module and all that it cannot do without.
    fn needs(name: &str, found: &mut BTreeSet<String>) {
        if found.insert(name.to_owned()) {
            imports(name, false).iter().for_each(|one| needs(one, found));
        }
    }

    #[test]
    fn imports_are_relative_and_lead_to_a_file() {
        let mut reached = BTreeSet::new();
        needs("app.js", &mut reached);
        for asset in ASSETS.iter().filter(|asset| asset.form == SCRIPT) {
            for is_later in [false, true] {
                for named in imports(asset.name, is_later) {
                    assert!(Asset::named(&named).is_some(), "{}: {named}", asset.name);
                    if is_later {
                        needs(&named, &mut reached);
                    }
                }
            }
        }
        for asset in ASSETS.iter().filter(|asset| asset.form == SCRIPT) {
            assert!(reached.contains(asset.name), "{} is not used", asset.name);
        }
    }

    #[test]
    fn a_browser_that_has_a_file_is_told_so() {
        let mut fields = HeaderMap::new();
        let first = file("/ui/app.js", &fields).unwrap();
        assert_eq!(first.head.status, StatusCode::OK);
        assert_eq!(first.head.fields[CONTENT_TYPE], SCRIPT);
        assert_eq!(first.head.fields[CACHE_CONTROL], "no-cache");
        let tag = first.head.fields[ETAG].to_str().unwrap().to_owned();
        for (value, status) in [
            (tag.clone(), 304),
            (format!("\"a\", W/{tag}"), 304),
            ("*".to_owned(), 304),
            ("\"a\"".to_owned(), 200),
            (String::new(), 200),
        ] {
            fields.insert(IF_NONE_MATCH, HeaderValue::try_from(&value).unwrap());
            let response = file("/ui/app.js", &fields).unwrap();
            assert_eq!(response.head.status, status, "{value}");
            assert_eq!(response.head.fields[ETAG], tag.as_str(), "{value}");
        }
    }

    #[test]
    fn paths_lead_to_nothing_else() {
        let fields = HeaderMap::new();
        for path in
            ["/ui/", "/ui/../Cargo.toml", "/ui/vendor", "/ui//app.js", "/ui/app.js/", "/app.js", "/ui/APP.JS"]
        {
            assert!(file(path, &fields).is_none(), "{path}");
        }
    }

    #[test]
    fn the_page_has_the_policy() {
        let response = page(&HeaderMap::new()).unwrap();
        let policy = response.head.fields[http::header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ] {
            assert!(policy.split(';').any(|one| one.trim() == part), "{part}");
        }
        assert_eq!(response.head.fields[CONTENT_TYPE], HTML);
        assert_eq!(response.head.fields[VARY], "accept");
    }
}
