//! What a server says of itself (`INFO`), and what larder makes of that.
//!
//! In: the text of `INFO`. Out: product, version, and what it does when its memory is full. larder never changes a server's settings: they
//! are its operator's.

use std::fmt;

/// The first version of Redis that has all of what larder asks for.
const REDIS_MIN: (u32, u32) = (7, 0);

/// See the head of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    product: Product,
    version: String,
    /// `maxmemory`, in bytes; 0 for none.
    memory_max: Option<u64>,
    policy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Product {
    Redis,
    /// Every version of it has what Redis 7.2 has.
    Valkey,
}

impl About {
    /// Reads it; `None` where no version is told.
    pub(crate) fn read(info: &str) -> Option<Self> {
        let line = |name: &str| {
            info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(|text| text.trim())
        };
        let is_plain = |text: &&str| text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_graphic());
        let (product, version) = match line("valkey_version").filter(is_plain) {
            Some(version) => (Product::Valkey, version),
            None => (Product::Redis, line("redis_version").filter(is_plain)?),
        };
        Some(Self {
            product,
            version: version.to_owned(),
            memory_max: line("maxmemory").and_then(|text| text.parse().ok()),
            policy: line("maxmemory_policy").filter(is_plain).map(str::to_owned),
        })
    }

    /// Why larder cannot work with it, if it cannot.
    pub(crate) fn refusal(&self) -> Option<String> {
        let mut numbers = self.version.split('.').map(str::parse::<u32>);
        let number = (numbers.next()?.ok()?, numbers.next().and_then(Result::ok).unwrap_or(0));
        (self.product == Product::Redis && number < REDIS_MIN)
            .then(|| format!("it is {self}, and larder needs Redis 7.0 or Valkey 7.2 at least"))
    }

    /// What it does when it is full, in words, where that is not what larder's own records and log need: `volatile-lru` or
    /// `volatile-lfu`, with a limit.
    pub fn advice(&self) -> Option<String> {
        let policy = self.policy.as_deref()?;
        let said = match (policy, self.memory_max) {
            (_, Some(0) | None) => {
                "it has no `maxmemory`, so what larder writes may take all memory of its host; set maxmemory, and \
                 maxmemory-policy volatile-lru"
                    .to_owned()
            }
            ("volatile-lru" | "volatile-lfu", _) => return None,
            ("noeviction", _) => "maxmemory-policy is noeviction: once it is full it takes no more records, and no more purges; \
                                  volatile-lru is better"
                .to_owned(),
            (policy, _) if policy.starts_with("allkeys") => format!(
                "maxmemory-policy is {policy}: it may evict the log of purges, and then all records are void; volatile-lru \
                 is better"
            ),
            (policy, _) => format!("maxmemory-policy is {policy}: what is used most may go first; volatile-lru is better"),
        };
        Some(said)
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let product = match self.product {
            Product::Redis => "Redis",
            Product::Valkey => "Valkey",
        };
        write!(f, "{product} {}", self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(version: &str, memory: &str) -> About {
        About::read(&format!("# Server\r\n{version}\r\nos:Linux\r\n# Memory\r\n{memory}\r\n")).unwrap()
    }

    #[test]
    fn an_old_server_is_refused_and_valkey_is_told_apart() {
        let refused = |version: &str| read(version, "").refusal();
        assert_eq!(refused("redis_version:7.0.15"), None);
        assert_eq!(refused("redis_version:8.2.1"), None);
        assert_eq!(
            refused("redis_version:6.2.14").as_deref(),
            Some("it is Redis 6.2.14, and larder needs Redis 7.0 or Valkey 7.2 at least")
        );
        assert!(refused("redis_version:5.0").is_some());
        // Valkey tells the version of Redis that it is compatible with as well.
        assert_eq!(refused("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1"), None);
        assert_eq!(read("redis_version:7.2.4\r\nvalkey_version:8.0.1", "").to_string(), "Valkey 8.0.1");
        for text in ["", "redis_version:", "redis_version: a b", "version:7"] {
            let about = About::read(text);
            assert!(about.is_none() || about.unwrap().refusal().is_none(), "{text}");
        }
    }

    #[test]
    fn each_policy_but_the_right_one_has_its_advice() {
        let advice = |limit: u64, policy: &str| {
            let memory = format!("maxmemory:{limit}\r\nmaxmemory_policy:{policy}");
            read("redis_version:7.0.15", &memory).advice().unwrap_or_default()
        };
        assert_eq!(advice(1, "volatile-lru"), "");
        assert_eq!(advice(1, "volatile-lfu"), "");
        assert!(advice(1, "noeviction").contains("no more purges"));
        assert!(advice(1, "allkeys-lru").contains("the log of purges"));
        assert!(advice(1, "allkeys-random").contains("allkeys-random"));
        assert!(advice(1, "volatile-ttl").contains("volatile-ttl"));
        assert!(advice(0, "volatile-lru").contains("no `maxmemory`"));
        assert_eq!(read("redis_version:7.0.15", "").advice(), None);
    }
}
