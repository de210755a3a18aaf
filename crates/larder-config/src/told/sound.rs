//! What is a secret by the sound of its name.
//!
//! In: the name of a field, a cookie, a parameter or a key of a config. Out: whether its value is not to be shown. Names are taken apart
//! at signs and where a capital letter begins a word; a few words are also found inside of others, as in `PHPSESSID`.
//! Deliberately absent: a look at the value.

/// Parts that are told wherever they stand.
const CONTAINED: [&str; 15] = [
    "token",
    "secret",
    "cookie",
    "sess",
    "signature",
    "apikey",
    "accesskey",
    "private",
    "passw",
    "passphrase",
    "passcode",
    "passkey",
    "credential",
    "jwt",
    "pwd",
];
/// In front of `key`, these name what is public.
const PUBLIC_KEYS: [&str; 3] = ["surrogate", "cache", "idempotency"];

/// Whether what has this name is a secret by the sound of it.
pub(crate) fn sounds_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    if lower.starts_with("access-control-") {
        return false;
    }
    if CONTAINED.iter().any(|part| lower.contains(part)) {
        return true;
    }
    let words = words(name);
    let before = std::iter::once("").chain(words.iter().map(String::as_str));
    let mut pairs = before.zip(&words);
    pairs.any(|(before, word)| match word.as_str() {
        "key" => !PUBLIC_KEYS.contains(&before),
        "verify" => before == "origin",
        word => is_secret(word),
    })
}

fn is_secret(word: &str) -> bool {
    let stem = word.trim_end_matches(|character: char| character.is_ascii_digit());
    let is_auth = (stem.starts_with("auth") && !matches!(stem, "author" | "authors" | "authority"))
        || stem.ends_with("auth");
    let is_pass = stem.ends_with("pass") && !matches!(stem, "bypass" | "compass");
    is_auth || is_pass || matches!(stem, "sig" | "cred" | "creds")
}

/// The words of a name, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_small = false;
    for character in name.chars() {
        let is_border = !character.is_ascii_alphanumeric() || (is_small && character.is_ascii_uppercase());
        is_small = !character.is_ascii_uppercase();
        if is_border {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| character.is_ascii_alphanumeric()) {
            word.push(character.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_told_from_others() {
        let secret = "Authorization Proxy-Authorization X-Auth-Type token view_token csrfToken X-Access-Token PHPSESSID \
                      connect.sess session_id Cookie Set-Cookie sig X-Amz-Signature signature key api_key x-api-key apiKey apikey pwd \
                      db_pwd userpwd pass dbpass password passphrase jwt X-JWT-Assertion AWSAccessKeyId awsaccesskeyid X-Origin-Verify \
                      private_key cred client-credentials oauth2 .ASPXAUTH user[sig] Basic-Auth";
        for name in secret.split_ascii_whitespace() {
            assert!(sounds_secret(name), "{name}");
        }
        let public = "Access-Control-Allow-Credentials access-control-allow-private-network X-Device Author authors \
                      authority Surrogate-Key X-Cache-Key Idempotency-Key keyword monkey X-Cache-Bypass passenger compress design \
                      accredited verify X-Verify page max-age Signal assign credits";
        for name in public.split_ascii_whitespace() {
            assert!(!sounds_secret(name), "{name}");
        }
    }
}
