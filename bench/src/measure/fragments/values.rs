//! A page whose fragments lie in memcached, where an application has put them.
//!
//! In: larder with a store of values, whose copies it uses for a second or not at all, and nginx with `memcached_pass`; each with a memcached of
//! its own, which has all fragments of the page. Out: the figures of the runner, and larder's target. The template is stored in
//! memory in all of them, and the origin is not asked. memcached runs on the load's core, and its time is nobody's.
//! Deliberately absent: Varnish, which cannot ask memcached.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{FIRST, NGINX_LINES, PAGE};
use crate::measure::contender::{Contender, Kit, LOAD_CORE, Setup, larder, nginx};
use crate::measure::outcome::{Judged, Outcome};
use crate::measure::runner::{Row, Scenario};
use harness::children::{Server, free_port};
use harness::pages::{self, Form, FragmentedPage};

const NEAR: &str = "larder, near 1 s";
const ANEW: &str = "larder, near 0 s";
const NGINX: &str = "nginx, memcached_pass";
const SCENARIO: &str = "10 fragments in memcached";
/// CPU per request where each fragment is looked up in memcached each time, over nginx's.
const OF_NGINX: f64 = 1.0 / 3.0;
const READY_MAX: Duration = Duration::from_secs(10);

/// For the page of the measurement.
pub(super) fn how() -> String {
    format!(
        "\"{SCENARIO}\": the fragments are values in memcached, which runs on the load's core. larder has `near = \"1s\"` and `near = \"0s\"`, \
         and nginx `memcached_pass` for the fragments."
    )
}

/// The page of ten fragments.
pub(super) fn scenario(kit: &Kit) -> Scenario<'_> {
    let page = PAGE.written(Form::Ssi);
    let larder_row = |name: &'static str, near: &'static str| {
        Row::new(name, move |setup| Memcached::of(&page)?.with_larder(kit, setup, name, near))
            .asking(page.target())
    };
    let nginx_row = Row::new(NGINX, move |setup| Memcached::of(&page)?.with_nginx(setup, NGINX));
    let rows = vec![larder_row(NEAR, "1s"), larder_row(ANEW, "0s"), nginx_row.asking(page.target())];
    Scenario::hit(SCENARIO, &PAGE.target(), PAGE.page(FIRST), rows)
}

/// larder's target.
pub(super) fn judge(outcome: &Outcome) -> Result<Judged> {
    outcome.cpu_at_most(SCENARIO, ANEW, OF_NGINX, NGINX)
}

/// A memcached with all fragments of a page.
pub(super) struct Memcached {
    address: SocketAddr,
    _server: Server,
}

impl Memcached {
    /// Starts it, and fills it.
    pub(super) fn of(page: &FragmentedPage) -> Result<Self> {
        let address = free_port()?;
        let mut command = Command::new("taskset");
        command.args(["-c", &LOAD_CORE.to_string(), "memcached", "-U", "0", "-m", "64", "-t", "1"]);
        command.args(["-l", &address.ip().to_string(), "-p", &address.port().to_string()]);
        if rustix::process::geteuid().is_root() {
            command.args(["-u", "root"]);
        }
        let mut server = Server::start("memcached", &mut command)?;
        server.wait_for(address, READY_MAX)?;
        fill(address, page).context("memcached")?;
        Ok(Self { address, _server: server })
    }

    /// larder, with a store of these values for fragments.
    pub(super) fn with_larder(
        self,
        kit: &Kit,
        setup: &Setup<'_>,
        name: &str,
        near: &str,
    ) -> Result<Contender> {
        let config = format!(
            "[log]\naccess = \"off\"\n\n[origins.app]\nservers = \"http://{}\"\n\n[stores.default]\nmemory = \"256MiB\"\n\n\
             [stores.fragments]\nmemory = \"64MiB\"\n\
             memcached = {{ servers = [\"{}\"], near = \"{near}\", default_type = \"text/plain\" }}\n\n\
             [[site]]\norigin = \"app\"\nassemble = \"ssi\"\n\n[[site.rule]]\npath = \"/page/part/*\"\nstore = \"fragments\"\n",
            setup.origin, self.address
        );
        let contender = larder::configured(&kit.larder, setup, name, &config)?.contender()?;
        Ok(contender.with_beside(self))
    }

    /// nginx, which asks for these values before the origin.
    pub(super) fn with_nginx(self, setup: &Setup<'_>, name: &str) -> Result<Contender> {
        let http = format!(
            "upstream values {{ server {}; keepalive 640; keepalive_requests 1000000000; }}",
            self.address
        );
        let proxy = nginx::PROXY;
        let locations = format!(
            "location / {{ {proxy} proxy_cache pages; {NGINX_LINES} ssi on; }}\n\
             location /page/part/ {{\nset $memcached_key $uri;\nmemcached_pass values;\nerror_page 404 502 504 = @app;\n}}\n\
             location @app {{ {proxy} }}"
        );
        let contender = nginx::configured(setup, name, &http, &locations)?.contender()?;
        Ok(contender.with_beside(self))
    }
}

fn fill(address: SocketAddr, page: &FragmentedPage) -> Result<()> {
    let mut stream = TcpStream::connect(address)?;
    let mut replies = BufReader::new(stream.try_clone()?);
    for key in page.parts() {
        let value = pages::answer(&key).context("no fragment")?.content;
        stream.write_all(format!("set {key} 0 0 {}\r\n", value.len()).as_bytes())?;
        stream.write_all(&value)?;
        stream.write_all(b"\r\n")?;
        let mut reply = String::new();
        replies.read_line(&mut reply)?;
        ensure!(reply == "STORED\r\n", "{key}: {reply:?}");
    }
    Ok(())
}
