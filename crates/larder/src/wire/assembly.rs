//! What a rule says about templates and fragments, in the words of the cache and of the proxy.

use std::sync::Arc;

use larder_cache::{Assemble, TemplatePolicy};
use larder_config::{AssembleMode, AssembleSetting, Escape, Fragments, OnError};
use larder_http::template::Language;
use larder_proxy::settings::FragmentSettings;

pub(super) fn templates(setting: &AssembleSetting) -> TemplatePolicy {
    TemplatePolicy {
        assemble: match setting.language {
            AssembleMode::Auto => Assemble::Auto,
            AssembleMode::Ssi => Assemble::Language(Language::Ssi),
            AssembleMode::Esi => Assemble::Language(Language::Esi),
            AssembleMode::Off => Assemble::Off,
        },
        types: setting.types.iter().map(|one| one.as_str().to_owned()).collect(),
        escapes_html: setting.escape == Escape::Html,
        strict: setting.strict,
    }
}

pub(super) fn fragments(setting: Fragments) -> Arc<FragmentSettings> {
    Arc::new(FragmentSettings {
        timeout: setting.timeout,
        page_timeout: setting.page_timeout,
        depth: setting.depth,
        count: setting.count,
        at_once: setting.at_once,
        page_size: setting.page_size.0,
        omits_failed: setting.on_error == OnError::Omit,
        is_silent: setting.silent,
        error_bodies: setting.error_bodies,
        hosts: setting.hosts.iter().map(|host| host.as_str().to_owned()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_that_says_nothing_gives_the_defaults_of_the_cache_and_of_the_proxy() {
        assert_eq!(templates(&AssembleSetting::default()), TemplatePolicy::default());
        assert_eq!(*fragments(Fragments::default()), FragmentSettings::default());
    }
}
