//! In whose words a purge was asked for.

/// The client or the API whose words ask for a purge. It is a word of metrics and of the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// PURGE of a URL or an expression.
    Plain,
    /// FOSHttpCache for Varnish, Ibexa.
    Varnish,
    /// FOSHttpCache for Symfony's own proxy.
    Symfony,
    /// Magento 2.
    Magento,
    /// Shopware, API Platform, Souin.
    Shopware,
    /// Drupal.
    Drupal,
    /// TYPO3, Neos.
    Typo3,
    /// nginx' modules and their clients.
    Nginx,
    /// Fastly's API.
    Fastly,
    /// Cloudflare's API.
    Cloudflare,
    /// LiteSpeed's fields of responses.
    LiteSpeed,
    /// larder's own API.
    Api,
    /// larder's command line.
    Cli,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Plain,
        Self::Varnish,
        Self::Symfony,
        Self::Magento,
        Self::Shopware,
        Self::Drupal,
        Self::Typo3,
        Self::Nginx,
        Self::Fastly,
        Self::Cloudflare,
        Self::LiteSpeed,
        Self::Api,
        Self::Cli,
    ];

    /// The fixed word.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Varnish => "varnish",
            Self::Symfony => "symfony",
            Self::Magento => "magento",
            Self::Shopware => "shopware",
            Self::Drupal => "drupal",
            Self::Typo3 => "typo3",
            Self::Nginx => "nginx",
            Self::Fastly => "fastly",
            Self::Cloudflare => "cloudflare",
            Self::LiteSpeed => "litespeed",
            Self::Api => "api",
            Self::Cli => "cli",
        }
    }
}
