//! Cookies of well-known applications and services, by name, with a value as they send it: which of them keep a request
//! from a page whose lifetime the application did not give, and which of them are never stored.

use http::{HeaderValue, header};
use larder_http::fields::cookie::SetCookie;

use super::own_sign;
use crate::example::request;
use crate::policy::{CachePolicy, SessionNames};

/// Logins, sessions, carts and people: each keeps its request from such a page, and is never stored.
const PERSONAL: [(&str, &str, &str); 61] = [
    ("WordPress", "wordpress_logged_in_37d007a56d816107ce5b52c10342db37", "admin%7C1700000000%7Cabc"),
    ("WordPress", "wordpress_sec_37d007a56d816107ce5b52c10342db37", "admin%7C1700000000%7Cabc"),
    ("WordPress, a locked post", "wp-postpass_37d007a56d816107ce5b52c10342db37", "%24P%24Babc"),
    ("WordPress, a comment's author", "comment_author_37d007a56d816107ce5b52c10342db37", "Bob"),
    ("WordPress, settings", "wp-settings-1", "libraryContent%3Dbrowse"),
    ("WooCommerce, a cart", "woocommerce_items_in_cart", "1"),
    ("WooCommerce", "woocommerce_cart_hash", "0f4137ed1502b5045d6083aa258b5c42"),
    ("WooCommerce", "wp_woocommerce_session_37d007a56d816107ce5b52c10342db37", "t_1%7C%7C1700000000"),
    ("Easy Digital Downloads", "edd_items_in_cart", "1"),
    ("PHP", "PHPSESSID", "el4ukv0kqbvoirg7nkp4dncpk3"),
    ("Java servlets", "JSESSIONID", "1A530637289A03B07199A44E8D531427"),
    ("ASP.NET", "ASP.NET_SessionId", "lw5ejhmzzlxrhb4uoyuyqw2c"),
    ("ASP.NET, forms", ".ASPXAUTH", "0A1B2C3D4E5F"),
    ("ASP.NET Core Identity", ".AspNetCore.Identity.Application", "CfDJ8abc"),
    ("ASP.NET Core", ".AspNetCore.Cookies", "CfDJ8abc"),
    ("ASP.NET Core, its chunks", ".AspNetCore.CookiesC1", "CfDJ8abc"),
    ("Express", "connect.sid", "s%3A0aBcD.xyz"),
    ("Koa", "koa.sess", "eyJfZXhwaXJlIjo"),
    ("Koa, signed", "koa.sess.sig", "UxI0a"),
    ("cookie-session", "express:sess", "eyJ1c2VyIjoxfQ=="),
    ("Django", "sessionid", "6q3cmn2zl0k2gkqn9vx7"),
    ("Django", "csrftoken", "lPUkCq1vVN3Ue1F9"),
    ("Flask", "session", "eyJ1IjoxfQ.ZV.abc"),
    ("Flask-Login", "remember_token", "1|abc"),
    ("Rails", "_myapp_session", "WTVqb0d"),
    ("Rails, Devise", "remember_user_token", "W1sxXSwi"),
    ("Laravel", "laravel_session", "eyJpdiI6"),
    ("Laravel", "XSRF-TOKEN", "eyJpdiI6"),
    ("Laravel", "remember_web_59ba36addc2b2f9401580f014c7f58ea4e30989d", "eyJpdiI6"),
    ("Symfony", "REMEMBERME", "App%5CEntity"),
    ("Yii", "_identity-frontend", "a%3A2%3A%7Bi"),
    ("CodeIgniter", "ci_session", "9v1v8r9k"),
    ("TYPO3, visitors", "fe_typo_user", "4ff1e5dbf3bd5d37c1e9"),
    ("TYPO3, editors", "be_typo_user", "4ff1e5dbf3bd5d37c1e9"),
    ("phpBB", "phpbb3_ab12c_u", "2"),
    ("phpBB", "phpbb3_ab12c_sid", "4ff1e5dbf3bd5d37c1e9"),
    ("phpBB", "phpbb3_ab12c_k", "4ff1e5dbf3bd5d37"),
    ("Joomla", "4bcf92ba5a3ea0ddf7cc5c1ac1c5dd43", "0b2f4d5e6a7b8c9d0e1f"),
    ("Joomla", "joomla_user_state", "logged_in"),
    ("Joomla", "joomla_remember_me_2cb5", "abc.def"),
    ("Drupal", "SSESSc4ca4238a0b923820dcc509a6f75849b", "Xq2"),
    ("MediaWiki", "wikidbUserID", "1"),
    ("MediaWiki", "wikidbUserName", "Admin"),
    ("MediaWiki", "wikidb_session", "el4ukv0kqbvoirg7"),
    ("DokuWiki", "DokuWiki", "el4ukv0kqbvoirg7nkp4dncpk3"),
    ("DokuWiki, remember me", "DW37d007a56d816107ce5b52c10342db37", "YWRtaW4%3D%7C0%7Cabc"),
    ("XenForo", "xf_user", "1%2Cabc"),
    ("MyBB", "mybbuser", "1_abc"),
    ("vBulletin", "bbpassword", "0b2f4d5e6a7b8c9d"),
    ("Discourse", "_t", "0b2f4d5e6a7b8c9d0e1f"),
    ("Moodle", "MoodleSession", "el4ukv0kqbvoirg7"),
    ("Magento", "private_content_version", "0b2f4d5e6a7b8c9d"),
    ("OpenCart", "OCSESSID", "0b2f4d5e6a7b8c9d"),
    ("PrestaShop", "PrestaShop-a30a9934ef476d11b6cc3c983616e364", "def50200"),
    ("Shopware", "session-1", "0b2f4d5e6a7b8c9d"),
    ("Shopify", "cart", "Z2NwLWV1"),
    ("Nextcloud", "oc_sessionPassphrase", "abc%2Bdef"),
    ("GitLab", "_gitlab_session", "0b2f4d5e6a7b8c9d"),
    ("Grafana", "grafana_session", "0b2f4d5e6a7b8c9d"),
    ("a JSON Web Token", "jwt", "eyJhbGciOi.eyJzdWIi.abc"),
    ("one's own", "user", "bob"),
];

/// Analytics, advertising, consent and what stands in front: none of them keeps its request from anything.
const HARMLESS: [(&str, &str); 61] = [
    ("Google Analytics", "_ga"),
    ("Google Analytics 4", "_ga_GTM12345"),
    ("Google Analytics", "_gid"),
    ("Google Analytics", "_gat_UA-12345-1"),
    ("Google Analytics, old", "__utma"),
    ("Google Ads", "_gcl_au"),
    ("Google Ads", "_gac_UA-12345-1"),
    ("Google AdSense", "__gads"),
    ("Google Tag Manager on a server", "FPID"),
    ("reCAPTCHA", "_GRECAPTCHA"),
    ("Meta", "_fbp"),
    ("Meta", "_fbc"),
    ("Hotjar", "_hjSessionUser_123456"),
    ("Hotjar", "_hjSession_123456"),
    ("Matomo", "_pk_id.1.fff4"),
    ("Matomo", "_pk_ses.1.fff4"),
    ("Matomo, consent", "mtm_consent"),
    ("Clarity", "_clck"),
    ("Clarity", "_clsk"),
    ("Microsoft Advertising", "_uetsid"),
    ("Microsoft Advertising", "_uetvid"),
    ("HubSpot", "__hstc"),
    ("HubSpot", "__hssc"),
    ("HubSpot", "hubspotutk"),
    ("Klaviyo", "__kla_id"),
    ("Mixpanel", "mp_0123456789abcdef_mixpanel"),
    ("PostHog", "ph_phc_0123456789_posthog"),
    ("Amplitude", "AMP_0123456789"),
    ("Segment", "ajs_anonymous_id"),
    ("Adobe Analytics", "AMCV_0123456789%40AdobeOrg"),
    ("Adobe Analytics", "s_cc"),
    ("Yandex Metrica", "_ym_uid"),
    ("Baidu", "Hm_lvt_0123456789abcdef"),
    ("TikTok", "_ttp"),
    ("Pinterest", "_pin_unauth"),
    ("Snapchat", "_scid"),
    ("Reddit", "_rdt_uuid"),
    ("LinkedIn", "li_fat_id"),
    ("Criteo", "cto_bundle"),
    ("Quantcast", "__qca"),
    ("WooCommerce, sources of orders", "sbjs_current"),
    ("Dynatrace", "dtCookie"),
    ("Datadog", "_dd_s"),
    ("OneTrust", "OptanonConsent"),
    ("OneTrust", "OptanonAlertBoxClosed"),
    ("Cookiebot", "CookieConsent"),
    ("Osano", "cookieconsent_status"),
    ("CookieYes", "cookieyes-consent"),
    ("GDPR Cookie Consent", "cookielawinfo-checkbox-necessary"),
    ("Complianz", "cmplz_marketing"),
    ("Borlabs", "borlabs-cookie"),
    ("Didomi", "didomi_token"),
    ("IAB", "euconsent-v2"),
    ("consentmanager", "__cmpconsent1234"),
    ("iubenda", "_iub_cs-1234"),
    ("Drupal, EU Cookie Compliance", "cookie-agreed"),
    ("WordPress, whether cookies work", "wordpress_test_cookie"),
    ("Cloudflare", "__cf_bm"),
    ("Cloudflare", "cf_clearance"),
    ("AWS load balancer", "AWSALB"),
    ("Imperva", "visid_incap_12345"),
];

/// Names that resemble harmless ones and are not.
const LOOKALIKES: [&str; 12] = [
    "ga",
    "_GA",
    "gid",
    "_fbpx",
    "hjid",
    "pk_id",
    "_clc",
    "wordpress_test",
    "cookieconsen",
    "AMP",
    "mp_session",
    "theme",
];

fn decides(policy: &CachePolicy, name: &str) -> bool {
    let cookies = format!("_ga=GA1.1.1.1; {name}=1; _fbp=fb.1.1");
    policy.personal_cookie(&request("GET", &[("cookie", &cookies)]).fields) == Some(name.as_bytes())
}

fn is_own(name: &str, value: &str) -> bool {
    let line = format!("{name}={value}; Path=/");
    own_sign(&SetCookie::of(line.as_bytes()), &CachePolicy::default()).is_some()
}

#[test]
fn the_cookies_of_applications_decide_and_are_never_stored() {
    for (application, name, value) in PERSONAL {
        assert!(decides(&CachePolicy::default(), name), "{application}: {name}");
        assert!(is_own(name, value), "{application}: {name}={value}");
    }
    for name in LOOKALIKES {
        assert!(decides(&CachePolicy::default(), name), "{name}");
    }
}

#[test]
fn the_cookies_of_analytics_advertising_and_consent_decide_nothing() {
    for (service, name) in HARMLESS {
        assert!(!decides(&CachePolicy::default(), name), "{service}: {name}");
        // What one visitor is followed by, or has agreed to, is no other's.
        assert!(is_own(name, "x"), "{service}: {name}");
    }
}

#[test]
fn session_cookies_narrows_and_keys_and_ignore_lift() {
    let names = |names: SessionNames| CachePolicy { session_cookies: Some(names), ..CachePolicy::default() };
    let known = names(SessionNames::known());
    for (name, expected) in [
        ("PHPSESSID", true),
        ("user", true),
        ("fe_typo_user", true),
        ("theme", false),
        ("_hjSession_1", false),
    ] {
        assert_eq!(decides(&known, name), expected, "{name}");
    }
    let own = names(SessionNames { exact: vec!["_fbp".to_owned()], ..SessionNames::default() });
    assert!(!decides(&own, "PHPSESSID"));
    let asked = request("GET", &[("cookie", "_fbp=1")]).fields;
    assert_eq!(own.personal_cookie(&asked), Some(&b"_fbp"[..]), "a whole name goes before the harmless ones");
    let keyed = CachePolicy { keyed_cookies: vec!["theme".to_owned()], ..CachePolicy::default() };
    assert!(!decides(&keyed, "theme") && decides(&keyed, "lang"));
    let ignoring = CachePolicy { ignore_cookies: true, ..CachePolicy::default() };
    assert!(!decides(&ignoring, "PHPSESSID"));
}

#[test]
fn odd_cookie_fields_decide_too() {
    let policy = CachePolicy::default();
    for (line, expected) in
        [("", None), (";", None), ("=x", Some(&b""[..])), ("x", Some(b"x")), ("_ga", None)]
    {
        let mut fields = http::HeaderMap::new();
        fields.insert(header::COOKIE, HeaderValue::from_static(line));
        assert_eq!(policy.personal_cookie(&fields), expected, "{line:?}");
    }
}
