//! The queries of the endpoints: questions in parameters.
//!
//! In: for `/explain`, `url=...&method=...&field=Name:%20value&field=...&content=...&offline=true`; for `/objects`,
//! `prefix=...&store=...&cursor=...&limit=...&remote=true&names=...`; for `/object`, `url=...&body=...&assembled=...`; each value percent-encoded. Out: a
//! question, or nothing where a parameter is unknown, stands twice, or is no text. `+` is a plus.

use crate::larder::{LIST_MAX, ListQuestion, ObjectQuestion, PageUse, Question};

/// What a page has where nobody says.
const LIST_DEFAULT: usize = 100;

/// Fields beyond which a question is not read.
const FIELDS_MAX: usize = 128;

/// Reads the parameters.
pub(crate) fn question(query: &str) -> Option<Question> {
    let (mut method, mut url, mut content, mut offline) = (None, None, None, None);
    let mut fields = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=')?;
        let value = decode(value)?;
        let place = match name {
            "method" => &mut method,
            "url" => &mut url,
            "content" => &mut content,
            "offline" => &mut offline,
            "field" if fields.len() < FIELDS_MAX => {
                let (name, value) = value.split_once(':')?;
                fields.push((name.trim().to_owned(), value.trim().to_owned()));
                continue;
            }
            _ => return None,
        };
        if place.replace(value).is_some() {
            return None;
        }
    }
    Some(Question {
        method: method.unwrap_or_else(|| "GET".to_owned()),
        url: url?,
        fields,
        content: content.unwrap_or_default(),
        offline: match offline.as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return None,
        },
    })
}

/// Reads the parameters of `/objects`.
pub(crate) fn list(query: &str) -> Option<ListQuestion> {
    let [prefix, store, cursor, limit, remote, names] =
        named(query, ["prefix", "store", "cursor", "limit", "remote", "names"])?;
    let remote = match remote.as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return None,
    };
    let names = match names {
        Some(names) => Some(names.parse().ok().filter(|names| *names > 0)?),
        None => None,
    };
    let limit = limit.map_or(Some(LIST_DEFAULT), |limit| limit.parse().ok())?;
    (1..=LIST_MAX).contains(&limit).then(|| ListQuestion {
        prefix: prefix.unwrap_or_default(),
        store,
        cursor,
        limit,
        remote,
        names,
    })
}

/// Reads the parameters of `/object`.
pub(crate) fn object(query: &str) -> Option<ObjectQuestion> {
    let [url, body, assembled] = named(query, ["url", "body", "assembled"])?;
    let body = body
        .map(|body| body.parse().ok().filter(|number| *number > 0))
        .map_or(Some(None), |n| n.map(Some))?;
    let assembled = match assembled.as_deref() {
        None => None,
        Some("page") => Some(PageUse::Shown),
        Some("export") => Some(PageUse::Exported),
        Some(_) => return None,
    };
    // There is one page, however many responses lie there.
    let is_one = assembled.is_none() || body.is_none_or(|number| number == 1);
    is_one.then_some(ObjectQuestion { url: url?, body, assembled })
}

/// Reads the parameters of `DELETE /object`: a URL alone.
pub(crate) fn purge(query: &str) -> Option<String> {
    let [url] = named(query, ["url"])?;
    url
}

/// Reads the parameters of `POST /api/v1/certificates`: a host alone.
pub(crate) fn renew(query: &str) -> Option<String> {
    let [name] = named(query, ["name"])?;
    name
}

/// The values of these parameters, where there is no other.
/// Parameters by name; `None` where one is unknown, stands twice, or is no text.
pub(crate) fn named<const N: usize>(query: &str, names: [&str; N]) -> Option<[Option<String>; N]> {
    let mut values = [const { None }; N];
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=')?;
        let place = names.iter().position(|other| *other == name)?;
        if values.get_mut(place)?.replace(decode(value)?).is_some() {
            return None;
        }
    }
    Some(values)
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok().filter(|_| digits.iter().all(u8::is_ascii_hexdigit))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_become_a_question() {
        let found = question("url=http%3A%2F%2Fa%2Fb%3Fc+d&field=X-A:%20%C3%A9:2&field=x-b:&offline=true");
        let fields =
            [("X-A", "\u{e9}:2"), ("x-b", "")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let expected = Question {
            method: "GET".to_owned(),
            url: "http://a/b?c+d".to_owned(),
            fields: fields.to_vec(),
            content: String::new(),
            offline: true,
        };
        assert_eq!(found, Some(expected));
        let query = question("method=QUERY&url=x&content=a%26b").unwrap();
        assert_eq!((&*query.method, &*query.content, query.offline), ("QUERY", "a&b", false));
    }

    #[test]
    fn a_listing_and_an_object_are_asked_for_by_parameters() {
        let plain = ListQuestion {
            prefix: String::new(),
            store: None,
            cursor: None,
            limit: 100,
            remote: false,
            names: None,
        };
        assert_eq!(list(""), Some(plain.clone()));
        let full = ListQuestion {
            prefix: "http://a/b?c=d".to_owned(),
            store: Some("default".to_owned()),
            cursor: Some("default:m0-1".to_owned()),
            limit: 1000,
            remote: true,
            names: Some(9),
        };
        let query = "prefix=http%3A%2F%2Fa%2Fb%3Fc%3Dd&store=default&cursor=default:m0-1&limit=1000&remote=true&names=9";
        assert_eq!(list(query), Some(full));
        for query in [
            "limit=0",
            "limit=1001",
            "limit=-1",
            "limit=x",
            "prefix=a&prefix=b",
            "other=1",
            "prefix",
            "remote=yes",
        ] {
            assert_eq!(list(query), None, "{query}");
        }
        let one = |body, assembled| Some(ObjectQuestion { url: "http://a/".to_owned(), body, assembled });
        assert_eq!(object("url=http://a/"), one(None, None));
        assert_eq!(object("url=http://a/&body=2"), one(Some(2), None));
        assert_eq!(object("url=http://a/&assembled=page"), one(None, Some(PageUse::Shown)));
        assert_eq!(object("url=http://a/&assembled=export&body=1"), one(Some(1), Some(PageUse::Exported)));
        for query in
            ["assembled=page", "url=a&assembled=", "url=a&assembled=true", "url=a&assembled=page&body=2"]
        {
            assert_eq!(object(query), None, "{query}");
        }
        for query in ["", "body=1", "url=a&body=0", "url=a&body=true", "url=a&body=-1", "url=a&x=1"] {
            assert_eq!(object(query), None, "{query}");
        }
        assert_eq!(purge("url=http://a/"), Some("http://a/".to_owned()));
        assert_eq!((purge(""), purge("url=a&body=1")), (None, None));
    }

    #[test]
    fn what_is_not_understood_is_no_question() {
        for query in [
            "",
            "method=GET",
            "url",
            "url=a&url=b",
            "url=%",
            "url=%4",
            "url=%+4",
            "url=%ff",
            "url=a&field=x",
            "url=a&offline=1",
            "url=a&colour=red",
        ] {
            assert_eq!(question(query), None, "{query}");
        }
        let many = format!("url=a{}", "&field=x:y".repeat(FIELDS_MAX + 1));
        assert_eq!(question(&many), None);
    }
}
