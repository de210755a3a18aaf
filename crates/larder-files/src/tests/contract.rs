//! Plain files as a tier, against what every tier must do.

use larder_cache::{CachePolicy, StoredHead};
use larder_http::time::{Clock, Now};
use larder_tier::Tier;
use larder_tier::contract::{Subject, run};

use super::*;
use crate::tier::HttpCaching;

/// Files in a directory that is opened again.
struct InDirectory {
    folder: TempDir,
    clock: Clock,
}

impl Subject for InDirectory {
    type Vocabulary = HttpCaching;

    fn make(&self) -> Arc<dyn Tier<HttpCaching>> {
        open(&self.folder.path().join("store"), 64 << 20, |settings| settings.max_object = 16 << 20)
    }

    fn head(&self, mark: u8) -> StoredHead {
        let mark: &str = Box::leak(mark.to_string().into_boxed_str());
        holds::head(200, &[("cache-control", "max-age=60"), ("x-mark", mark)])
    }

    fn head_bytes(&self, head: &StoredHead) -> Vec<u8> {
        // A listing adds the date of arrival.
        let mut fields = head.all_fields();
        fields.remove(http::header::DATE);
        format!("{} {fields:?} {:?}", head.status, head.freshness.lifetime).into_bytes()
    }

    fn policy(&self) -> CachePolicy {
        CachePolicy::default()
    }

    fn now(&self) -> Now {
        self.clock.now()
    }

    fn put_apart(&self, uri: &TargetUri<'_>, content: &[u8]) -> bool {
        let path = self.folder.path().join("store").join(format!("{}{}", uri.authority, uri.path));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        true
    }
}

#[test]
fn plain_files_are_a_tier() {
    let subject = InDirectory { folder: tempfile::tempdir().unwrap(), clock: Clock::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run(&subject));
}
