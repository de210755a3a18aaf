//! What there is at the admin address: one table, and how a request finds its line.
//!
//! In: a path and a method. Out: an [`Endpoint`] and one of its [`Action`]s, with the class that says who may ask. The guard's
//! decisions, the page at `/` and the reference are all made from the table, so that they cannot differ.

pub(crate) mod line;
mod pages;
mod table;

use http::Method;

use crate::purges::api::PurgeApi;

pub use pages::api_markdown;
pub(crate) use pages::index_text;
pub(crate) use table::ENDPOINTS;

use line::{Action, Class, Deed, Endpoint};

/// Below this path unknown parameters are refused, and pages of other sites may not even look.
const API: &str = "/api/";

impl Endpoint {
    /// The endpoint that a path belongs to.
    pub(crate) fn at(path: &str) -> Option<&'static Self> {
        ENDPOINTS.iter().find(|endpoint| matches(endpoint.path, path))
    }

    /// What a method does here.
    pub(crate) fn action(&self, method: &Method) -> Option<&Action> {
        self.actions.iter().find(|action| action.methods.iter().any(|known| method == known))
    }

    /// Every method that is answered here, for Allow.
    pub(crate) fn methods(&self) -> String {
        let methods: Vec<_> = self.actions.iter().flat_map(|action| action.methods).copied().collect();
        methods.join(", ")
    }

    /// Whose purges are taken here, where any are.
    pub(crate) fn purge_api(&self) -> Option<PurgeApi> {
        self.actions.iter().find_map(|action| match action.deed {
            Deed::Purge(api) => Some(api),
            _ => None,
        })
    }

    /// Whether no token is needed here.
    pub(crate) fn is_open(&self) -> bool {
        self.actions.iter().all(|action| action.class == Class::Open)
    }

    /// Whether it is of the API with versions, which is strict.
    pub(crate) fn is_of_api(&self) -> bool {
        self.path.starts_with(API)
    }
}

impl Action {
    /// The name of a parameter in `query` that the action does not have.
    pub(crate) fn unknown_parameter<'q>(&self, query: &'q str) -> Option<&'q str> {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let mut names = pairs.map(|pair| pair.split('=').next().unwrap_or_default());
        names.find(|name| !self.parameters.iter().any(|known| known.name == *name))
    }
}

/// Whether a path has the form of an endpoint's.
fn matches(form: &str, path: &str) -> bool {
    let mut rest = path;
    let mut parts = form.split('/').skip(1).peekable();
    while let Some(part) = parts.next() {
        let Some(below) = rest.strip_prefix('/') else { return false };
        let stands_for_any = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_uppercase());
        if stands_for_any && parts.peek().is_none() {
            return true;
        }
        let (own, after) = below.split_at(below.find('/').unwrap_or(below.len()));
        if own != part && (!stands_for_any || own.is_empty()) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_one_endpoint() {
        for (path, form) in [
            ("/", Some("/")),
            ("/healthz", Some("/healthz")),
            ("/ui/app.js", Some("/ui/PATH")),
            ("/ui/pages/why.js", Some("/ui/PATH")),
            ("/ui", None),
            ("/healthz/", None),
            ("/object", Some("/object")),
            ("/objects", Some("/objects")),
            ("/api/v1/purges", Some("/api/v1/purges")),
            ("/api/v1/purges/", Some("/api/v1/purges/ID")),
            ("/api/v1/purges/7-a", Some("/api/v1/purges/ID")),
            ("/purge/", Some("/purge/URL")),
            ("/purge/shop.example/a/b", Some("/purge/URL")),
            ("/purge", None),
            ("/service/all/purge", Some("/service/ID/purge")),
            ("/service/all/purge/a/b", Some("/service/ID/purge/KEY")),
            ("/service/all/purge_all", Some("/service/ID/purge_all")),
            ("/service/all/purge_all/a", None),
            ("/service/a/b/purge", None),
            ("/service//purge", None),
            ("/client/v4/zones/a/purge_cache", Some("/client/v4/zones/ID/purge_cache")),
            ("/client/v4/zones/a/b/purge_cache", None),
            ("/client/v4/zones//purge_cache", None),
            ("*", None),
            ("", None),
        ] {
            assert_eq!(Endpoint::at(path).map(|endpoint| endpoint.path), form, "{path}");
            let all = ENDPOINTS.iter().filter(|endpoint| matches(endpoint.path, path));
            assert_eq!(all.count(), usize::from(form.is_some()), "{path}");
        }
    }

    #[test]
    fn no_method_stands_twice_and_every_line_is_complete() {
        for endpoint in ENDPOINTS {
            let mut methods: Vec<_> = endpoint.actions.iter().flat_map(|action| action.methods).collect();
            let count = methods.len();
            methods.sort_unstable();
            methods.dedup();
            assert_eq!(methods.len(), count, "{}", endpoint.path);
            for action in endpoint.actions {
                let sentences = action.parameters.iter().map(|parameter| parameter.about);
                for sentence in sentences.chain([action.purpose, action.answer]) {
                    assert!(sentence.ends_with('.'), "{}: {sentence}", endpoint.path);
                }
                let changes = action.class == Class::Changes;
                assert_eq!(
                    changes,
                    !action.methods.contains(&"GET"),
                    "{}: GET changes nothing",
                    endpoint.path
                );
            }
        }
    }

    #[test]
    fn parameters_are_known_by_their_names() {
        let list = Endpoint::at("/objects").and_then(|endpoint| endpoint.action(&Method::GET)).unwrap();
        assert_eq!(list.unknown_parameter(""), None);
        assert_eq!(list.unknown_parameter("limit=1&&prefix=a=b"), None);
        assert_eq!(list.unknown_parameter("limit=1&colour"), Some("colour"));
        assert_eq!(list.unknown_parameter("limit=1&=x"), Some(""));
    }
}
