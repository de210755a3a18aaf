//! What is remembered and shown.

use std::time::Duration;

use super::errors::check_top;
use super::*;
use crate::{ClientAddresses, HiddenParameter};

#[test]
fn what_is_not_said_has_its_default_and_a_list_replaces_the_default_one() {
    let live = good(SITE).config.live;
    assert_eq!((live.history, live.memory.0), (Duration::from_hours(24), 16 << 20));
    assert_eq!(live.clients, ClientAddresses::Masked);
    let names: Vec<_> = live.redact.iter().map(HiddenParameter::as_str).collect();
    let usual = ["token", "password", "sig", "Signature", "AWSAccessKeyId", "X-Goog-Signature", "*_key"];
    assert_eq!(names, usual);
    let live = good(&format!("[live]\nredact = [\"sid\", \"*x*\"]\nhistory = \"0s\"\n{SITE}")).config.live;
    assert_eq!(live.redact.iter().map(HiddenParameter::as_str).collect::<Vec<_>>(), ["sid", "*x*"]);
    assert!(live.history.is_zero());
    assert!(good(&format!("[live]\nredact = []\n{SITE}")).config.live.redact.is_empty());
}

#[test]
fn bad_values_are_told() {
    check_top(
        "[live]\nhistory = \"25h\"\nmemory = \"1KiB\"\nclients = \"mask\"\nredact = [\"a*b\", \"a=b\", \"\"]\n",
        r#"
larder.toml:2:11: live.history: found "25h", expected "0s" to "24h"
larder.toml:3:10: live.memory: found "1KiB", expected "1MiB" to "1GiB"
larder.toml:4:11: live.clients: found "mask", expected "masked" or "full" or "off"
  hint: did you mean "masked"?
larder.toml:5:11: live.redact[0]: found "a*b", expected a parameter's name such as "token", "*_key"
  hint: a `*` stands at an end, and there is no `?`
larder.toml:5:18: live.redact[1]: found "a=b", expected a parameter's name such as "token", "*_key"
  hint: a name as it is behind percent-encoding, without its value
larder.toml:5:25: live.redact[2]: found "", expected a parameter's name such as "token", "*_key"
"#,
    );
}
