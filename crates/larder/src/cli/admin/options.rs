//! Which larder to ask: options, the environment, and its config file.
//!
//! In: `--admin`, `--token`, `-c`, `LARDER_ADMIN` and `LARDER_ADMIN_TOKEN`, in this order: what is typed wins over what is
//! exported. Out: host and port, and the token. An address may be written as a URL, because that is how `larder run` prints it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use larder_config::Config;

use super::{AdminClientError, RunningLarder};

/// Where the address is looked for when it is not given.
const ADDRESS_VARIABLE: &str = "LARDER_ADMIN";
/// Where the token is looked for when it is not given.
const TOKEN_VARIABLE: &str = "LARDER_ADMIN_TOKEN";
/// The admin address of a larder whose config names none.
const DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8081);

/// Which larder to ask, by its address.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct AddressArguments {
    /// The admin address of the larder to ask, or its URL [default: LARDER_ADMIN, else 127.0.0.1:8081]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    admin: Option<String>,
    /// Its token [default: LARDER_ADMIN_TOKEN, which no list of processes shows]
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

/// Which larder to ask, by its address or by its config file.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct AdminArguments {
    #[command(flatten)]
    by_address: AddressArguments,
    /// The config file of the larder to ask, for its admin address and token
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl AddressArguments {
    /// The larder that they name.
    ///
    /// # Errors
    /// What the environment has is no address.
    pub(in crate::cli) fn larder(&self) -> Result<RunningLarder, AdminClientError> {
        self.or((None, None), variable)
    }

    /// The same, with what the config file says.
    fn or(
        &self,
        (admin, token): (Option<SocketAddr>, Option<String>),
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<RunningLarder, AdminClientError> {
        let admin = match (&self.admin, admin, variable(ADDRESS_VARIABLE)) {
            (Some(typed), ..) => typed.clone(),
            (None, Some(configured), _) => reachable(configured).to_string(),
            (None, None, Some(exported)) => address(&exported)
                .map_err(|why| AdminClientError::Address(format!("{ADDRESS_VARIABLE}={exported}: {why}")))?,
            (None, None, None) => DEFAULT.to_string(),
        };
        let token = self.token.clone().or(token).or_else(|| variable(TOKEN_VARIABLE));
        Ok(RunningLarder { admin, token: token.filter(|token| !token.is_empty()) })
    }
}

impl AdminArguments {
    /// The larder that they name. Reads the config file, where one is named.
    ///
    /// # Errors
    /// The file has errors, or its larder has no admin address; or what the environment has is no address.
    pub(in crate::cli) fn larder(&self) -> Result<RunningLarder, AdminClientError> {
        let configured = match (&self.config, self.config()?) {
            (None, _) | (_, None) => (None, None),
            (Some(path), Some(config)) => {
                let (admin, is_given) = (config.admin.address, self.by_address.admin.is_some());
                let admin = match admin {
                    None if !is_given => return Err(AdminClientError::Off(path.display().to_string())),
                    Some(any) if any.port() == 0 && !is_given => {
                        let said =
                            format!("{} has the admin address {any}, which takes any port", path.display());
                        return Err(AdminClientError::Address(format!(
                            "{said}: --admin names the one it took"
                        )));
                    }
                    admin => admin,
                };
                (admin, config.admin.token.map(|token| token.expose().to_owned()))
            }
        };
        self.by_address.or(configured, variable)
    }

    /// What the config file says, where one is named.
    ///
    /// # Errors
    /// The file has errors.
    pub(in crate::cli) fn config(&self) -> Result<Option<Config>, AdminClientError> {
        let Some(path) = &self.config else { return Ok(None) };
        Ok(Some(larder_config::load(path).map_err(AdminClientError::Config)?.config))
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Where a larder that listens on `address` is reached from its own machine.
pub(in crate::cli) fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Reads an address: `HOST:PORT`, `HOST`, `:PORT`, or `http://HOST:PORT/`. Returns host and port.
fn address(text: &str) -> Result<String, String> {
    let (rest, default_port) = match text.split_once("://") {
        None => (text, DEFAULT.port()),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (rest, 80),
        Some((scheme, _)) => return Err(format!("the admin address speaks http, not {scheme}")),
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if !matches!(path, "" | "/") {
        return Err(format!("expected an address, and nothing behind it such as {path}"));
    }
    if authority.contains('@') || authority.contains(char::is_whitespace) {
        return Err("expected HOST:PORT or http://HOST:PORT; a token goes into --token".to_owned());
    }
    let bracketed = authority.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Ok(ip) = bracketed.unwrap_or(authority).parse::<IpAddr>() {
        return Ok(reachable(SocketAddr::new(ip, default_port)).to_string());
    }
    if let Ok(both) = authority.parse::<SocketAddr>() {
        return Ok(reachable(both).to_string());
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| format!("{port:?} is no port"))?),
        None => (authority, default_port),
    };
    match host {
        "" if authority.is_empty() => Err("expected HOST:PORT or http://HOST:PORT".to_owned()),
        "" => Ok(SocketAddr::new(DEFAULT.ip(), port).to_string()),
        host if host.contains(['[', ']', ':']) => Err(format!("{host:?} is no host")),
        host => Ok(format!("{host}:{port}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_from_all_the_forms_in_which_it_is_printed_or_typed() {
        for (text, expected) in [
            ("127.0.0.1:8081", "127.0.0.1:8081"),
            ("127.0.0.1", "127.0.0.1:8081"),
            ("localhost", "localhost:8081"),
            (":9000", "127.0.0.1:9000"),
            ("http://127.0.0.1:8081/", "127.0.0.1:8081"),
            ("HTTP://cache.internal:9000", "cache.internal:9000"),
            ("http://cache.internal", "cache.internal:80"),
            ("[::1]:8081", "[::1]:8081"),
            ("[::1]", "[::1]:8081"),
            ("::1", "[::1]:8081"),
            ("http://[::1]/", "[::1]:80"),
            ("0.0.0.0:8081", "127.0.0.1:8081"),
            ("http://[::]:8081", "[::1]:8081"),
        ] {
            assert_eq!(address(text).as_deref(), Ok(expected), "{text}");
        }
        for (text, part) in [
            ("https://127.0.0.1:8081", "speaks http, not https"),
            ("http://127.0.0.1:8081/stats", "such as /stats"),
            ("http://token@127.0.0.1:8081", "--token"),
            ("localhost:admin", "\"admin\" is no port"),
            ("localhost:99999", "is no port"),
            ("", "expected HOST:PORT"),
            ("http://", "expected HOST:PORT"),
            ("[::1", "no host"),
        ] {
            let said = address(text).expect_err(text);
            assert!(said.contains(part), "{text}: {said}");
        }
    }

    #[test]
    fn what_is_typed_wins_over_the_file_and_that_over_the_environment() {
        let typed = |admin: Option<&str>, token: Option<&str>| AddressArguments {
            admin: admin.map(str::to_owned),
            token: token.map(str::to_owned),
        };
        let none = |_: &str| None;
        let exported =
            |name: &str| Some(if name == ADDRESS_VARIABLE { "c:3" } else { "exported" }.to_owned());
        let file = || (Some(SocketAddr::from(([0, 0, 0, 0], 2))), Some("filed".to_owned()));
        let found = |admin: &str, token: Option<&str>| RunningLarder {
            admin: admin.to_owned(),
            token: token.map(str::to_owned),
        };
        let larder = |typed: AddressArguments, file, variable: &dyn Fn(&str) -> Option<String>| {
            typed.or(file, variable).expect("an address")
        };
        assert_eq!(larder(typed(Some("a:1"), Some("typed")), file(), &exported), found("a:1", Some("typed")));
        assert_eq!(larder(typed(None, None), file(), &exported), found("127.0.0.1:2", Some("filed")));
        assert_eq!(larder(typed(None, None), (None, None), &exported), found("c:3", Some("exported")));
        assert_eq!(larder(typed(None, None), (None, None), &none), found("127.0.0.1:8081", None));
        let wrong = typed(None, None).or((None, None), |_| Some("https://x".to_owned()));
        assert!(wrong.is_err_and(|error| error.to_string().starts_with("LARDER_ADMIN=https://x: ")));
    }
}
