//! The query of `/explain`: a request in parameters.
//!
//! In: `url=...&method=...&field=Name:%20value&field=...&content=...&offline=true`, each value percent-encoded. Out: a
//! [`Question`], or nothing where a parameter is unknown, stands twice, or is no text. `+` is a plus.

use crate::larder::Question;

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
