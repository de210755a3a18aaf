//! Who is let in at the admin address: the forms of `[admin]` in a config, and what tokens and names do over a socket.

use crate::support::{Process, written};

#[tokio::test]
async fn check_says_what_is_wrong_with_the_admin_address_and_what_to_do() {
    const SITE: &str = "[[site]]\nroot = \".\"\n";
    let cases = [
        ("admin = false", 0, ""),
        ("admin = { address = \"127.0.0.1:0\", token = \"0123456789abcdef\" }", 0, ""),
        (
            "admin_token = \"0123456789abcdef\"",
            3,
            "larder.toml:1:1: admin_token: the key has moved\n  hint: write token in [admin]",
        ),
        (
            "admin = \"0.0.0.0:8081\"",
            3,
            "larder.toml:1:9: admin: 0.0.0.0:8081 can be reached from other machines, and there is no token",
        ),
        (
            "[admin]\naddress = \"0.0.0.0:8081\"\ntoken = \"0123456789abcdef\"",
            0,
            "reach it by `ssh -L 8081:127.0.0.1:8081 HOST`, or by a site of this larder behind TLS",
        ),
        (
            "[admin]\nview_token = \"0123456789abcdef\"",
            3,
            "larder.toml:2:14: admin.view_token: it stands alone",
        ),
    ];
    for (admin, code, part) in cases {
        let (_directory, path) = written(&format!("{admin}\n{SITE}"));
        let mut check = Process::start(&["check", "-c", path.to_str().unwrap()]);
        let ended = check.end().await;
        let stderr = check.stderr().join("\n");
        assert_eq!(ended, code, "{admin}: {stderr}");
        assert!(stderr.contains(part) && stderr.is_empty() == part.is_empty(), "{admin}: {stderr}");
    }
}
