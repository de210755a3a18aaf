//! What is made from the table: the list at `/`, and the page of the reference.
//!
//! In: [`ENDPOINTS`]. Out: texts.

use std::fmt::Write;

use super::line::{Action, Class};
use super::table::ENDPOINTS;
use larder_observe::watch::{FIGURES, SAMPLE_KEYS};

/// The list at `/`, for clients that take no HTML.
pub(crate) fn index_text() -> String {
    let mut text = String::new();
    for endpoint in ENDPOINTS {
        for action in endpoint.actions {
            let method = action.methods.first().copied().unwrap_or_default();
            let _ = writeln!(text, "{method:<6} {:<32} {}", endpoint.path, action.purpose.replace('`', ""));
        }
    }
    text
}

/// The reference of the admin address, in Markdown.
pub fn api_markdown() -> String {
    let mut page = String::from(
        "# The admin address\n\n<!-- Generated from the declarations in the crates; edit those. -->\n\n\
         What larder answers at its [admin address](../guide/operating.md#the-admin-address). Keys of JSON are added between versions and \
         not\nrenamed below `/api/v1/`.\n\n\
         ## Who may ask\n\n\
         | class | what it does | who may ask |\n|---|---|---|\n",
    );
    for class in [Class::Open, Class::Looks, Class::Costs, Class::Changes] {
        let _ = writeln!(page, "| {} | {} | {} |", class.word(), class.about(), class.who());
    }
    page.push_str(
        "\nA request shows its token in `Authorization: Bearer TOKEN`. Without a `token` in `[admin]` none is needed. That is possible on loopback only.\n\n\
         ## Errors of every endpoint\n\n\
         An error is JSON: `error` is a fixed word, and `message` is a sentence whose wording may change. The purge APIs of Fastly and\n\
         Cloudflare have errors in their own form.\n\n\
         | status | when |\n|---|---|\n\
         | 400 | below `/api/`: a parameter is unknown |\n\
         | 401 | the endpoint needs a token, and the request shows none or a wrong one |\n\
         | 403 | a page of another site made the browser ask (`Sec-Fetch-Site`), or the token is `view_token` and the request changes something |\n\
         | 404 | there is no such path |\n\
         | 405 | the path does not have the method; `Allow` lists those that it has |\n\
         | 421 | `Host` is no address, no loopback name and none of the `hosts` in `[admin]` |\n\
         | 429 | the token is wrong, and ten before it from the same address were wrong within a minute; `Retry-After` says how long this lasts |\n\n\
         A right token is let in also where wrong ones from its address are answered 429. IPv6 addresses count by their first 64 bits.\n\
         `larder_admin_refused_total` counts refusals by reason.\n",
    );
    for endpoint in ENDPOINTS {
        let _ = write!(page, "\n## `{}`\n", endpoint.path);
        endpoint.actions.iter().for_each(|action| describe(action, &mut page));
    }
    page.push_str(
        "\n## A request\n\nThe members of a request in `/api/v1/requests` and `/api/v1/live`. One without a value is left out. Most of them are \
         fields of\n[filters](filter.md) as well.\n\n| member | form | meaning |\n|---|---|---|\n",
    );
    for key in SAMPLE_KEYS {
        let _ = writeln!(page, "| `{}` | {} | {} |", key.name, key.form, key.meaning);
    }
    page.push_str(
        "\n## Figures\n\nThe names in `/api/v1/now`, `/api/v1/series` and the `tick` of `/api/v1/live`. Words in capitals stand for what \
         differs; in names\nof the configuration, `%`, `:`, `,`, `&`, `=`, `?`, `#`, `+`, spaces and controls are percent-encoded. A figure \
         that is not there was zero.\n\n| figure | unit | meaning |\n|---|---|---|\n",
    );
    for figure in FIGURES {
        let _ = writeln!(page, "| `{}` | {} | {} |", figure.form(), figure.unit, figure.meaning);
    }
    page
}

fn describe(action: &Action, page: &mut String) {
    let methods: Vec<_> = action.methods.iter().map(|method| format!("`{method}`")).collect();
    let _ = write!(
        page,
        "\n{}\n\n- Methods: {}\n- Class: {}\n- Answer: {}\n",
        action.purpose,
        methods.join(", "),
        action.class.word(),
        action.answer
    );
    if let Some(command) = action.command {
        let _ = writeln!(page, "- Command: `{command}`");
    }
    for (name, lines) in [
        (
            "Parameters",
            action.parameters.iter().map(|it| format!("`{}`: {}", it.name, it.about)).collect::<Vec<_>>(),
        ),
        ("Errors", action.errors.iter().map(|(status, when)| format!("{status}: {when}.")).collect()),
    ] {
        if lines.is_empty() {
            let _ = writeln!(page, "- {name}: none");
            continue;
        }
        let _ = writeln!(page, "- {name}:");
        for line in &lines {
            let _ = writeln!(page, "  - {line}");
        }
    }
}

impl Class {
    fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Looks => "looks",
            Self::Costs => "costs",
            Self::Changes => "changes",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Open => "tells nothing about clients and responses",
            Self::Looks => "shows what larder knows already",
            Self::Costs => "asks disks or an origin",
            Self::Changes => "purges",
        }
    }

    fn who(self) -> &'static str {
        match self {
            Self::Open => "every client that reaches the address",
            Self::Looks => "a client with `token` or `view_token`; below `/api/` no page of another site",
            Self::Costs => "a client with `token` or `view_token`, but no page of another site",
            Self::Changes => "a client with `token`, but no page of another site",
        }
    }
}
