//! Wrong tokens by the address that they come from, so that guessing shows. What protects is the length of a token.
//!
//! In: a wrong token's sender and the time. Out: whether it is told to wait, and how long. Ten wrong tokens within a minute close the
//! address to wrong ones for a minute; right ones are never judged here. An IPv6 network counts by its first 64 bits, which one
//! client has. A table of fixed size holds the addresses: where it is full, the one that was noted first goes.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use parking_lot::Mutex;

/// Wrong tokens of an address within [`SPAN`] that close it.
pub(crate) const WRONG_MAX: u32 = 10;
/// How long wrong tokens are counted together, and how long an address stays closed.
pub(crate) const SPAN: Duration = Duration::from_secs(60);
/// Between two events about closed addresses.
const TOLD_EVERY: Duration = Duration::from_secs(10);
/// Addresses that are known at once.
pub(crate) const ADDRESSES_MAX: usize = 256;

/// What becomes of a wrong token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is refused as wrong.
    Wrong,
    /// The same, and it closes its address: the next ones wait.
    Closing,
    /// Its sender has to wait.
    Wait(Duration),
}

/// Senders of wrong tokens. The lock is held for one look through the table.
#[derive(Debug, Default)]
pub(crate) struct WrongTokens(Mutex<Vec<Sender>>);

/// Which closings of addresses are told: one in ten seconds.
#[derive(Debug, Default)]
pub(crate) struct Closed(Mutex<(Option<Duration>, u64)>);

impl Closed {
    /// An address was closed. How many were not told since the last that was; `None` where this one is not told either.
    pub(crate) fn may_tell(&self, now: Duration) -> Option<u64> {
        let mut closed = self.0.lock();
        let (told, untold) = &mut *closed;
        if told.is_some_and(|told| now.saturating_sub(told) < TOLD_EVERY) {
            *untold += 1;
            return None;
        }
        *told = Some(now);
        Some(std::mem::take(untold))
    }
}

#[derive(Debug)]
struct Sender {
    network: IpAddr,
    /// When the tokens began that `count` has.
    since: Duration,
    count: u32,
    closed_until: Option<Duration>,
}

impl WrongTokens {
    /// Notes one from `address` at this moment of the monotonic clock; and whether an address was forgotten for it that still
    /// counted.
    pub(crate) fn note(&self, address: IpAddr, now: Duration) -> (Verdict, bool) {
        let network = network_of(address);
        let mut senders = self.0.lock();
        let mut has_forgotten = false;
        if !senders.iter().any(|sender| sender.network == network) {
            if senders.len() >= ADDRESSES_MAX {
                let oldest = senders.iter().enumerate().min_by_key(|(_, sender)| sender.since);
                if let Some((index, _)) = oldest {
                    has_forgotten = senders.swap_remove(index).counts_at(now);
                }
            }
            senders.push(Sender { network, since: now, count: 0, closed_until: None });
        }
        let sender = senders.iter_mut().find(|sender| sender.network == network);
        (sender.map_or(Verdict::Wrong, |sender| sender.note(now)), has_forgotten)
    }
}

impl Sender {
    fn note(&mut self, now: Duration) -> Verdict {
        if let Some(left) =
            self.closed_until.and_then(|until| until.checked_sub(now)).filter(|left| !left.is_zero())
        {
            return Verdict::Wait(left);
        }
        if self.closed_until.is_some() || now.saturating_sub(self.since) >= SPAN {
            (self.since, self.count, self.closed_until) = (now, 0, None);
        }
        self.count += 1;
        if self.count >= WRONG_MAX {
            self.closed_until = Some(now + SPAN);
            return Verdict::Closing;
        }
        Verdict::Wrong
    }

    /// Whether what it sends now is judged by what it sent before.
    fn counts_at(&self, now: Duration) -> bool {
        self.closed_until.map_or(now.saturating_sub(self.since) < SPAN, |until| now < until)
    }
}

/// What counts as one sender.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_eleventh_within_a_minute_waits_until_a_minute_after_the_tenth() {
        let wrong = WrongTokens::default();
        let note = |of: &str, second: u32| wrong.note(address(of), SECOND * second).0;
        for second in 0..9 {
            assert_eq!(note("192.0.2.1", second), Verdict::Wrong);
        }
        assert_eq!(note("192.0.2.1", 9), Verdict::Closing);
        assert_eq!(note("192.0.2.1", 10), Verdict::Wait(SECOND * 59));
        assert_eq!(note("192.0.2.1", 68), Verdict::Wait(SECOND), "waiting does not make it longer");
        assert_eq!(note("192.0.2.2", 10), Verdict::Wrong, "another address");
        for second in 69..78 {
            assert_eq!(note("192.0.2.1", second), Verdict::Wrong, "it counts anew");
        }
        assert_eq!(note("192.0.2.1", 78), Verdict::Closing);
        assert_eq!(note("192.0.2.1", 79), Verdict::Wait(SECOND * 59));
    }

    #[test]
    fn closings_are_told_once_in_ten_seconds_with_a_count() {
        let closed = Closed::default();
        for (second, told) in [(1, Some(0)), (2, None), (10, None), (11, Some(2)), (21, Some(0))] {
            assert_eq!(closed.may_tell(SECOND * second), told, "{second}");
        }
    }

    #[test]
    fn fewer_than_ten_a_minute_never_wait() {
        let wrong = WrongTokens::default();
        for second in (0..3600).step_by(7) {
            assert_eq!(wrong.note(address("192.0.2.1"), SECOND * second).0, Verdict::Wrong, "{second}");
        }
    }

    #[test]
    fn the_first_64_bits_of_ipv6_are_one_sender_and_ipv4_in_ipv6_is_ipv4() {
        let wrong = WrongTokens::default();
        for number in 0..10 {
            wrong.note(address(&format!("2001:db8::{number:x}")), SECOND);
            wrong.note(address("::ffff:192.0.2.1"), SECOND);
        }
        for (of, waits) in
            [("2001:db8::ffff", true), ("2001:db8:0:1::1", false), ("192.0.2.1", true), ("::1", false)]
        {
            let (verdict, _) = wrong.note(address(of), SECOND);
            assert_eq!(matches!(verdict, Verdict::Wait(_)), waits, "{of}");
        }
    }

    #[test]
    fn the_table_never_grows_and_says_what_it_forgets() {
        let wrong = WrongTokens::default();
        let note = |number: u32, now| wrong.note(IpAddr::from(number.to_be_bytes()), now).1;
        let max = u32::try_from(ADDRESSES_MAX).unwrap();
        assert!((0..max).all(|number| !note(number, SECOND + SECOND * number / max)));
        assert!(note(max, SECOND * 2), "the first still counted");
        assert!(!note(max + 1, SECOND * 120), "the next no longer did");
        let senders = wrong.0.lock();
        assert_eq!(senders.len(), ADDRESSES_MAX);
        let known =
            |number: u32| senders.iter().any(|sender| sender.network == IpAddr::from(number.to_be_bytes()));
        assert!(!known(0) && !known(1) && known(2) && known(max));
    }
}
