//! What the application says: templates with conditions, parts of all kinds, and under which names each of them is purged.
//!
//! In: requests at its socket. Out: answers that carry a number of their own, which grows from request to request, and the cookies
//! they were made for. It confirms what it has made, fails now and then, and holds answers back while it is told to.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use larder_testkit::origin::{Answer, Origin, Seen};
use parking_lot::Mutex;

use super::Dice;

const LIMIT: Duration = Duration::from_secs(20);
/// Stands where a request has no cookie.
pub(super) const NO_COOKIE: &str = "-";

/// A resource of the application.
pub(super) struct Resource {
    pub(super) target: &'static str,
    /// Of a template.
    language: Option<&'static str>,
    text: &'static str,
    /// What it may say of its lifetime.
    lifetimes: &'static [&'static str],
    varies: Option<&'static str>,
    pub(super) tags: &'static [&'static str],
    /// What is made for one cookie is for no other.
    pub(super) is_own: bool,
}

const SSI: Option<&str> = Some("SSI/1.0");
const ESI: Option<&str> = Some("ESI/1.0");
const TEMPLATE: Resource = Resource {
    target: "",
    language: SSI,
    text: "",
    lifetimes: &["max-age=300", "max-age=30", "max-age=300, s-maxage=60", "s-maxage=90"],
    varies: None,
    tags: &["pages"],
    is_own: false,
};
const PART: Resource = Resource {
    language: None,
    lifetimes: &["max-age=120", "max-age=20", "max-age=60, s-maxage=15"],
    tags: &["parts"],
    ..TEMPLATE
};

pub(super) const PAGES: [&str; 7] =
    ["/page/1", "/page/2", "/page/3", "/page/4", "/page/5", "/page/6", "/page/7"];

static RESOURCES: [Resource; 15] = [
    Resource {
        target: "/page/1",
        text: "<!--#include virtual=\"/part/plain\" --><!--#if expr=\"$cookie_name\" -->Hello \
               <!--#echo var=\"cookie_name\" --><!--#include virtual=\"/part/short\" --><!--#else -->\
               <!--#include virtual=\"/part/lang\" --><!--#endif -->",
        ..TEMPLATE
    },
    Resource {
        target: "/page/2",
        language: ESI,
        text: "<esi:choose><esi:when test=\"$(HTTP_X_LANG)=='de'\">Hallo <esi:include src=\"/part/lang\"/></esi:when>\
               <esi:otherwise><esi:include src=\"/part/plain\"/></esi:otherwise></esi:choose>\
               <esi:vars>$(HTTP_COOKIE{name}|'you')</esi:vars><esi:include src=\"/part/own\" onerror=\"continue\"/>",
        ..TEMPLATE
    },
    Resource {
        target: "/page/3",
        text: "<!--#include virtual=\"/part/nested\" --><!--#echo var=\"request_method\" -->",
        ..TEMPLATE
    },
    Resource {
        target: "/page/4",
        text: "<!--#if expr=\"$cookie_session\" --><!--#include virtual=\"/part/private\" --><!--#elif \
               expr=\"$cookie_name\" --><!--#echo var=\"http_if_none_match\" --><!--#endif -->\
               <!--#include virtual=\"/part/behind\" -->",
        ..TEMPLATE
    },
    Resource {
        target: "/page/5",
        text: "<!--#if expr=\"$http_x_lang\" --><!--#echo var=\"remote_addr\" --><!--#elif expr=\"$cookie_name\" -->\
               <!--#echo var=\"date_gmt\" --><!--#endif --><!--#include virtual=\"/part/ahead\" -->",
        tags: &["pages", "often"],
        ..TEMPLATE
    },
    Resource {
        target: "/page/6",
        language: ESI,
        text: "<esi:include src=\"/part/ahead\"/><esi:include src=\"/part/plain\"/><esi:include src=\"/part/lang\"/>\
               <esi:choose><esi:when test=\"$(HTTP_X_LANG)=='de' | $(HTTP_COOKIE{name})=='ada'\">one of both</esi:when></esi:choose>",
        lifetimes: &["max-age=60"],
        ..TEMPLATE
    },
    // Of which only the parts are kept.
    Resource {
        target: "/page/7",
        text: "<!--#echo var=\"remote_addr\" --><!--#include virtual=\"/part/plain\" --><!--#include virtual=\"/part/short\" -->\
               <!--#include virtual=\"/part/lang\" --><!--#include virtual=\"/part/nested\" --><!--#include virtual=\"/part/own\" -->",
        ..TEMPLATE
    },
    Resource {
        target: "/part/nested",
        language: ESI,
        text: "<esi:include src=\"/part/plain\"/><esi:choose><esi:when test=\"$(HTTP_COOKIE{name})=='ada'\">for Ada\
               </esi:when></esi:choose>",
        tags: &["parts"],
        ..TEMPLATE
    },
    Resource { target: "/part/plain", ..PART },
    Resource {
        target: "/part/short",
        lifetimes: &["max-age=2", "max-age=5"],
        tags: &["parts", "often"],
        ..PART
    },
    Resource { target: "/part/lang", varies: Some("X-Lang"), ..PART },
    Resource { target: "/part/own", varies: Some("Cookie"), is_own: true, ..PART },
    Resource { target: "/part/private", lifetimes: &["private", "no-store"], is_own: true, ..PART },
    Resource { target: "/part/behind", lifetimes: &["max-age=4, stale-while-revalidate=30"], ..PART },
    Resource { target: "/part/ahead", lifetimes: &["max-age=60"], tags: &["parts", "often"], ..PART },
];

/// The resource at a target.
pub(super) fn resource(target: &str) -> Option<&'static Resource> {
    RESOURCES.iter().find(|resource| resource.target == target)
}

/// All targets with one of these tags, or below a prefix.
pub(super) fn targets(is_named: impl Fn(&Resource) -> bool) -> Vec<&'static str> {
    RESOURCES.iter().filter(|resource| is_named(resource)).map(|resource| resource.target).collect()
}

/// What it has said so far.
struct Said {
    dice: Dice,
    /// The number of the last request.
    last: u64,
    /// For which cookies the answer of a number was made.
    made: HashMap<u64, String>,
    /// The last request that confirmed the answer of a number.
    confirmed: HashMap<u64, u64>,
    /// Answers are held back at times.
    holds: bool,
    /// Gates of those that are.
    held: Vec<String>,
}

pub(super) struct Application {
    said: Arc<Mutex<Said>>,
    origin: Origin,
}

impl Application {
    pub(super) fn new(seed: u64) -> Self {
        let said = Said {
            dice: Dice::new(seed),
            last: 0,
            made: HashMap::new(),
            confirmed: HashMap::new(),
            holds: true,
            held: Vec::new(),
        };
        let said = Arc::new(Mutex::new(said));
        let answers = Arc::clone(&said);
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let origin = Origin::answering(anywhere, LIMIT, move |seen| answers.lock().answer(seen)).unwrap();
        Self { said, origin }
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.origin.addr()
    }

    /// The number of the last request.
    pub(super) fn last(&self) -> u64 {
        self.said.lock().last
    }

    /// Since when the answer of a number is known to hold.
    pub(super) fn holds_since(&self, number: u64) -> u64 {
        self.said.lock().confirmed.get(&number).map_or(number, |confirmed| number.max(*confirmed))
    }

    /// Gives all answers that are held back, and from now on each at once or not.
    pub(super) fn answers_at_once(&self, at_once: bool) {
        let mut said = self.said.lock();
        said.holds = !at_once;
        if at_once {
            said.held.drain(..).for_each(|gate| self.origin.gates().release(&gate));
        }
    }

    pub(super) fn complaints(&self) -> Vec<String> {
        self.origin.log().complaints()
    }
}

impl Said {
    fn answer(&mut self, seen: &Seen) -> Answer {
        self.last += 1;
        let number = self.last;
        let Some(resource) = resource(&seen.target).filter(|_| seen.method != "POST") else {
            return Answer::new(200, &["Cache-Control: no-store"], "done");
        };
        let hold = (self.holds && self.dice.percent(40)).then(|| format!("answer {number}"));
        self.held.extend(hold.clone());
        if resource.language.is_none() && self.dice.percent(3) {
            return Answer { hold, ..Answer::new(503, &["Cache-Control: no-store"], "down") };
        }
        let cookie = seen.fields.first("cookie").unwrap_or(NO_COOKIE).to_owned();
        let offered = seen.fields.first("if-none-match");
        let offered = offered.and_then(|tag| tag.trim_matches('"').parse::<u64>().ok());
        let is_for_them = |made: &String| !resource.is_own || *made == cookie;
        let offered = offered.filter(|offered| self.made.get(offered).is_some_and(is_for_them));
        let confirmed = offered.filter(|_| self.dice.percent(50));
        let fields = resource.fields(confirmed.unwrap_or(number), &mut self.dice);
        if let Some(confirmed) = confirmed {
            self.confirmed.insert(confirmed, number);
            return Answer { status: Some(304), fields, hold, ..Answer::default() };
        }
        let body = format!("[{}|{number}|{cookie}]{}", resource.target, resource.text);
        self.made.insert(number, cookie);
        Answer { fields, hold, body: Some(body), ..Answer::default() }
    }
}

impl Resource {
    fn fields(&self, tag: u64, dice: &mut Dice) -> Vec<String> {
        let mut fields = vec![
            format!("Cache-Control: {}", dice.of(self.lifetimes)),
            format!("ETag: \"{tag}\""),
            format!("Surrogate-Key: {}", self.tags.join(" ")),
            "Content-Type: text/html".to_owned(),
        ];
        fields.extend(self.language.map(|language| format!("Surrogate-Control: content=\"{language}\"")));
        fields.extend(self.varies.map(|name| format!("Vary: {name}")));
        fields
    }
}
