//! One client's cookies, and a watch over whom each cookie was given to.
//!
//! In: answers. Out: the field `Cookie` of the client's next request, and an error where two clients were given the
//! same value. Paths, domains and lifetimes are left out: the applications here have one of each.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use super::fetch::Answer;

/// What one client keeps.
#[derive(Default)]
pub(super) struct Jar {
    cookies: BTreeMap<String, String>,
}

impl Jar {
    /// Keeps what an answer sets.
    pub(super) fn keep(&mut self, answer: &Answer) {
        for (name, value) in set_by(answer) {
            self.cookies.insert(name, value);
        }
    }

    /// Puts one in by hand.
    pub(super) fn put(&mut self, name: &str, value: &str) {
        self.cookies.insert(name.to_owned(), value.to_owned());
    }

    /// The value of a cookie.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.cookies.get(name).map(String::as_str)
    }

    /// The field of a request, where there is any cookie.
    pub(super) fn field(&self) -> Option<String> {
        let pairs: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        (!pairs.is_empty()).then(|| format!("Cookie: {}", pairs.join("; ")))
    }
}

/// Which client was given which cookie.
#[derive(Default)]
pub(super) struct Given {
    by: BTreeMap<(String, String), usize>,
}

impl Given {
    /// Notes what client `who` was given by an answer.
    ///
    /// # Errors
    /// Somebody else was given the same.
    pub(super) fn note(&mut self, who: usize, target: &str, answer: &Answer) -> Result<()> {
        for (name, value) in set_by(answer) {
            // What says that a cookie ends is the same for all.
            if value.is_empty() || value == "deleted" || value == "\"\"" {
                continue;
            }
            match self.by.insert((name.clone(), value), who) {
                Some(first) if first != who => {
                    bail!(
                        "{target}: client {who} was given `{name}` of client {first}: {}",
                        answer.cache_status
                    )
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// How many cookies there were.
    pub(super) fn count(&self) -> usize {
        self.by.len()
    }
}

fn set_by(answer: &Answer) -> impl Iterator<Item = (String, String)> {
    answer.set_cookies.iter().filter_map(|cookie| {
        let (name, value) = cookie.split(';').next()?.split_once('=')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn answer(cookie: &str) -> Answer {
        Answer { set_cookies: vec![cookie.to_owned()], ..Answer::default() }
    }

    #[test]
    fn a_cookie_that_two_clients_were_given_is_found() {
        let mut given = Given::default();
        given.note(0, "/", &answer("sid=a; HttpOnly")).unwrap();
        given.note(0, "/", &answer("sid=a; HttpOnly")).unwrap();
        given.note(1, "/", &answer("sid=b; HttpOnly")).unwrap();
        given.note(1, "/", &answer("sid=; Max-Age=0")).unwrap();
        assert!(given.note(1, "/x", &answer("sid=a; Path=/")).is_err());
    }

    #[test]
    fn a_jar_sends_what_it_was_given_last() {
        let mut jar = Jar::default();
        assert_eq!(jar.field(), None);
        jar.keep(&answer("sid=a; HttpOnly"));
        jar.keep(&answer("sid=b"));
        jar.put("lang", "de");
        assert_eq!(jar.field().unwrap(), "Cookie: lang=de; sid=b");
    }
}
