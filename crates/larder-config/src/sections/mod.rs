//! Every table of the config and every key, each declared once.

pub(crate) mod config;
pub(crate) mod disk;
pub(crate) mod edits;
pub(crate) mod ejection;
pub(crate) mod files;
pub(crate) mod health;
pub(crate) mod key;
pub(crate) mod limits;
pub(crate) mod log;
pub(crate) mod origin;
pub(crate) mod place;
pub(crate) mod retry;
pub(crate) mod rule;
pub(crate) mod server;
pub(crate) mod settings;
pub(crate) mod site;
pub(crate) mod store;
