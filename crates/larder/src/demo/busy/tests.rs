//! The busy demo within this process: its config, its text, and its end.

use super::*;

const FREE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

#[test]
fn it_ends_after_its_time_and_its_text_fits_80_columns() {
    let mut out = Vec::new();
    let options = BusyOptions { rate: 5000, admin: Some(FREE), seconds: Some(1) };
    show(&options, &mut Screen::new(&mut out, false)).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let (_, answers) = text.rsplit_once("Ended after ").unwrap();
    let answers: u64 = answers.trim_end_matches(" answers.\n").replace(',', "").parse().unwrap();
    assert!(answers > 0, "{text}");
}

#[test]
fn a_taken_admin_address_is_refused_where_it_was_asked_for_and_avoided_where_it_is_the_usual_one() {
    let filler = Arc::new(Filler::new());
    let server = || ShopServer::start(ServerHealth::Well, &filler).unwrap();
    let (well, weak) = (server(), server());
    let front = |asked, usual| front((&well, &weak), asked, usual);
    let first = front(Some(FREE), FREE).unwrap();
    let taken = first.admin_address().unwrap();
    assert!(front(Some(taken), FREE).is_err(), "{taken} is taken");
    let other = front(None, taken).unwrap().admin_address().unwrap();
    assert!(other != taken && other.ip().is_loopback(), "{other}");
}

#[test]
fn the_config_has_no_warnings_and_names_its_rules() {
    let text =
        CONFIG.replace("ADMIN", "127.0.0.1:0").replace("WELL", "127.0.0.1:1").replace("WEAK", "127.0.0.1:2");
    let checked = larder_config::parse(&text, "demo", std::path::Path::new("")).unwrap();
    assert!(checked.warnings.is_empty(), "{:?}", checked.warnings);
    for name in ["assets", "images", "products", "blog", "api"] {
        assert!(text.contains(&format!("name = \"{name}\"")), "{name}");
    }
}
