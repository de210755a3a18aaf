//! What the nodes of a cluster say of its slots (`CLUSTER SLOTS`), and what follows from all of it.
//!
//! In: the answers of a round. Out: the owner of each slot, by majority. Nodes have numbers, in the order in which they were first seen. When
//! there are no more, a new node gets that of the one that has been without slots for longest ([`UNUSED_MIN`] at least).
//! Deliberately absent: a clock. The moments are any that never go back.

use std::collections::HashMap;
use std::time::Duration;

use ::redis::Value;

use super::slot::{SLOTS, Slot};
use crate::address::Address;

/// The most nodes that there are within [`UNUSED_MIN`]. Keys of slots at further ones are misses.
pub(crate) const NODES_MAX: usize = 250;
/// A number is another node's after so long without slots. Requests to the former one are over long before; a deletion may still wait in
/// its queue, and follows its key from there.
const UNUSED_MIN: Duration = Duration::from_secs(300);

/// Who has each slot, in the words of one node: stretches, with their ends.
pub(super) type SlotRanges = Vec<(Slot, Slot, Address)>;

/// Whose answers are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voters {
    /// Those of all masters that are known: what they agree on is so.
    Masters,
    /// Those of nodes that the config names, where most of the masters have gone. They may be cut off as well, so they are followed, and
    /// confirm nothing.
    Seeds,
    /// That of any node, where nothing is known yet. It confirms nothing.
    AnyNode,
}

/// A node for each slot.
pub(super) type Owners = Box<[Option<u8>; SLOTS]>;

/// See the head of the file.
pub(super) struct SlotMap {
    /// By their numbers, each with the moment at which it had slots last, as far as it has none now.
    nodes: Vec<(Address, Duration)>,
    owners: Owners,
    /// What a majority has said in the last round.
    named: Owners,
    /// Nodes that have answered in it, and those that were asked.
    answered: (usize, usize),
    /// What was said in it. `None` after a slot has moved.
    last: Option<Vec<SlotRanges>>,
    /// How often a slot that had an owner has got another one.
    changes: u64,
}

impl Default for SlotMap {
    fn default() -> Self {
        let nobody = || Box::new([None; SLOTS]);
        Self {
            nodes: Vec::new(),
            owners: nobody(),
            named: nobody(),
            answered: (0, 0),
            last: None,
            changes: 0,
        }
    }
}

impl SlotMap {
    /// The node that has a slot.
    pub(super) fn owner(&self, slot: Slot) -> Option<usize> {
        self.owners.get(usize::from(slot))?.map(usize::from)
    }

    /// The node that a majority has named in the last round.
    pub(super) fn named(&self, slot: Slot) -> Option<&Address> {
        self.node(usize::from((*self.named.get(usize::from(slot))?)?))
    }

    /// The address of a node.
    pub(super) fn node(&self, number: usize) -> Option<&Address> {
        self.nodes.get(number).map(|(address, _)| address)
    }

    /// How many numbers nodes have.
    pub(super) fn count(&self) -> usize {
        self.nodes.len()
    }

    /// How often a slot has got another owner.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// How many have answered in the last round, of how many.
    pub(super) fn answered(&self) -> (usize, usize) {
        self.answered
    }

    /// The number of a node that is known.
    pub(super) fn known(&self, address: &Address) -> Option<u8> {
        u8::try_from(self.nodes.iter().position(|(node, _)| node == address)?).ok()
    }

    /// The number of a node, another one where it is not known. `None` where there are too many.
    fn number(&mut self, address: &Address, now: Duration) -> Option<u8> {
        if let Some(known) = self.known(address) {
            return Some(known);
        }
        let new = (address.clone(), now);
        if self.nodes.len() < NODES_MAX {
            self.nodes.push(new);
            return u8::try_from(self.nodes.len() - 1).ok();
        }
        let have_slots = self.have_slots();
        let unused = self.nodes.iter_mut().enumerate().zip(have_slots).filter(|(_, has_slots)| !has_slots);
        let ((number, unused), _) = unused.min_by_key(|((_, (_, since)), _)| *since)?;
        if now < unused.1 + UNUSED_MIN {
            return None;
        }
        *unused = new;
        u8::try_from(number).ok()
    }

    /// A slot has another owner, as its former one says.
    pub(super) fn moved(&mut self, slot: Slot, node: u8, now: Duration) {
        self.last = None;
        let Some(owner) = self.owners.get_mut(usize::from(slot)) else { return };
        if let Some(former) = owner.replace(node).filter(|former| *former != node) {
            self.changes += 1;
            self.had_slots(former, now);
        }
    }

    /// A node has some at this moment, or is said to.
    fn had_slots(&mut self, node: u8, now: Duration) {
        if let Some((_, since)) = self.nodes.get_mut(usize::from(node)) {
            *since = now;
        }
    }

    /// Of each node by its number, whether it has slots.
    pub(super) fn have_slots(&self) -> Vec<bool> {
        let mut have_slots = vec![false; self.nodes.len()];
        for owner in self.owners.iter().flatten() {
            have_slots.get_mut(usize::from(*owner)).into_iter().for_each(|has| *has = true);
        }
        have_slots
    }

    /// Nodes that have slots.
    pub(super) fn masters(&self) -> Vec<Address> {
        let nodes = self.nodes.iter().zip(self.have_slots()).filter(|(_, has_slots)| *has_slots);
        nodes.map(|((node, _), _)| node.clone()).collect()
    }

    /// Gives numbers to new nodes that more than half of so many name. `None` where nothing is other than in the last round.
    pub(super) fn ballot<'a>(
        &mut self,
        answers: &'a [SlotRanges],
        (of, voters): (usize, Voters),
        now: Duration,
    ) -> Option<Ballot<'a>> {
        let answered = (answers.len(), of);
        if voters == Voters::Masters && self.last.as_deref() == Some(answers) && self.answered == answered {
            return None;
        }
        self.answered = answered;
        let needed = if voters == Voters::AnyNode { 0 } else { of / 2 };
        // In how many answers each one is, and in which one it was last.
        let mut named_by: HashMap<&Address, (usize, usize)> = HashMap::new();
        for (voter, told) in answers.iter().enumerate() {
            for (.., address) in told {
                let (count, last) = named_by.entry(address).or_insert((0, usize::MAX));
                *count += usize::from(*last != voter);
                *last = voter;
            }
        }
        // No number that somebody names goes to another node in the same vote.
        for number in named_by.keys().filter_map(|address| self.known(address)).collect::<Vec<_>>() {
            self.had_slots(number, now);
        }
        // In the order of the answers, so that it is the same in each run. A node that a minority names takes no number from others.
        let mut numbers = HashMap::new();
        for (.., address) in answers.iter().flatten() {
            if numbers.contains_key(address) {
                continue;
            }
            let is_named = named_by.get(address).is_some_and(|(count, _)| *count > needed);
            let number = if is_named { self.number(address, now) } else { self.known(address) };
            numbers.insert(address, number);
        }
        Some(Ballot { numbers, needed })
    }

    /// Takes what was counted. Whose word that is: see [`Voters`].
    pub(super) fn take(
        &mut self,
        elected: Owners,
        answers: Vec<SlotRanges>,
        (_, voters): (usize, Voters),
        now: Duration,
    ) {
        let had_slots = self.have_slots();
        for ((elected, owner), named) in elected.iter().zip(&mut self.owners[..]).zip(&mut self.named[..]) {
            *named = elected.filter(|_| voters == Voters::Masters);
            let is_other = owner.is_some() && elected.is_some() && owner != elected;
            self.changes += u64::from(is_other);
            *owner = elected.or(*owner);
        }
        for ((_, since), _) in self.nodes.iter_mut().zip(had_slots).filter(|(_, had_slots)| *had_slots) {
            *since = now;
        }
        self.last = (voters == Voters::Masters).then_some(answers);
    }
}

/// What a vote needs to be counted.
pub(super) struct Ballot<'a> {
    /// Those of all nodes that are named, as far as they have one.
    numbers: HashMap<&'a Address, Option<u8>>,
    /// A node needs more votes than that.
    needed: usize,
}

impl Ballot<'_> {
    /// The node of each slot that enough say.
    pub(super) fn count(&self, answers: &[SlotRanges]) -> Owners {
        let mut candidates: Vec<u8> = self.numbers.values().flatten().copied().collect();
        candidates.sort_unstable();
        let width = candidates.len();
        let mut votes = vec![0_u8; SLOTS * width];
        for (first, last, address) in answers.iter().flatten() {
            let number = self.numbers.get(address).copied().flatten();
            let Some(column) = number.and_then(|number| candidates.binary_search(&number).ok()) else {
                continue;
            };
            for slot in usize::from(*first)..=usize::from(*last) {
                let votes = votes.get_mut(slot * width + column).into_iter();
                votes.for_each(|votes| *votes = votes.saturating_add(1));
            }
        }
        let mut elected = Box::new([None; SLOTS]);
        for (votes, elected) in votes.chunks(width.max(1)).zip(elected.iter_mut()) {
            let most = votes.iter().zip(&candidates).max_by_key(|(votes, _)| **votes);
            *elected = most.filter(|(votes, _)| usize::from(**votes) > self.needed).map(|(_, node)| *node);
        }
        elected
    }
}

/// The answer to `CLUSTER SLOTS`: each stretch with its master first. An empty host stands for the one that was asked.
pub(super) fn told(reply: &Value, asked: &Address) -> Option<SlotRanges> {
    let Value::Array(stretches) = reply else { return None };
    let slot = |value: &Value| match value {
        Value::Int(slot) => Slot::try_from(*slot).ok().filter(|slot| usize::from(*slot) < SLOTS),
        _ => None,
    };
    let stretch = |stretch: &Value| {
        let Value::Array(parts) = stretch else { return None };
        let [first, last, Value::Array(master), ..] = parts.as_slice() else { return None };
        let [host, Value::Int(port), ..] = master.as_slice() else { return None };
        let host = match (host, asked) {
            (Value::BulkString(host), _) if !host.is_empty() => {
                std::str::from_utf8(host).ok()?.to_ascii_lowercase()
            }
            (Value::BulkString(_) | Value::Nil, Address::Tcp { host, .. }) => host.clone(),
            _ => return None,
        };
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        let port = u16::try_from(*port).ok().filter(|port| *port != 0)?;
        let (first, last) = (slot(first)?, slot(last)?);
        (first <= last && host.bytes().all(is_host)).then_some((first, last, Address::Tcp { host, port }))
    };
    let mut seen = vec![false; SLOTS];
    let mut told = Vec::new();
    for each in stretches {
        let (first, last, address) = stretch(each)?;
        // No slot has two masters, so an answer is no longer than there are slots.
        for slot in seen.get_mut(usize::from(first)..=usize::from(last))? {
            if std::mem::replace(slot, true) {
                return None;
            }
        }
        told.push((first, last, address));
    }
    Some(told)
}

/// Reads an answer, and takes it as the first one. How many stretches it has; `None` where it is none.
#[cfg(feature = "fuzzing")]
pub(crate) fn read_slots(bytes: &[u8]) -> Option<usize> {
    let value = ::redis::parse_redis_value(bytes).ok()?;
    let told = told(&value, &Address::Tcp { host: "asked".to_owned(), port: 1 })?;
    let (mut map, stretches) = (SlotMap::default(), told.len());
    hold(&mut map, vec![told.clone()], (1, Voters::AnyNode));
    hold(&mut map, vec![told], (1, Voters::Masters));
    map.masters().len().le(&NODES_MAX).then_some(stretches)
}

/// A whole vote.
#[cfg(any(test, feature = "fuzzing"))]
fn hold(map: &mut SlotMap, answers: Vec<SlotRanges>, said: (usize, Voters)) {
    if let Some(ballot) = map.ballot(&answers, said, Duration::ZERO) {
        let elected = ballot.count(&answers);
        map.take(elected, answers, said, Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> Address {
        Address::Tcp { host: "n".to_owned(), port }
    }

    /// Who has a slot, by the port.
    fn owner(map: &SlotMap, slot: Slot) -> Option<u16> {
        match map.node(map.owner(slot)?)? {
            Address::Tcp { port, .. } => Some(*port),
            Address::Unix(_) => None,
        }
    }

    fn halves(first: u16, second: u16) -> SlotRanges {
        vec![(0, 8191, at(first)), (8192, 16_383, at(second))]
    }

    #[test]
    fn the_first_answer_is_believed_and_then_a_majority_of_the_masters() {
        let mut map = SlotMap::default();
        hold(&mut map, vec![halves(1, 2)], (3, Voters::AnyNode));
        assert_eq!((owner(&map, 0), owner(&map, 16_383)), (Some(1), Some(2)));
        assert_eq!(map.named(0), None, "one answer names nothing");
        assert_eq!(map.masters(), [at(1), at(2)]);
        // One of three that is cut off.
        hold(&mut map, vec![halves(1, 2), halves(3, 2), halves(3, 2)], (3, Voters::Masters));
        assert_eq!((owner(&map, 0), owner(&map, 16_383)), (Some(3), Some(2)));
        assert_eq!(map.named(0), Some(&at(3)));
        hold(&mut map, vec![halves(1, 2)], (3, Voters::Masters));
        assert_eq!((owner(&map, 0), map.named(0)), (Some(3), None), "what was known stays, and is not named");
        hold(&mut map, vec![halves(1, 2), halves(2, 1)], (3, Voters::Masters));
        assert_eq!(owner(&map, 0), Some(3), "nor is it changed by as many as contradict each other");
        hold(&mut map, vec![halves(9, 9)], (3, Voters::Masters));
        assert_eq!(map.known(&at(9)), None, "a minority names no node");
        hold(&mut map, vec![halves(1, 2)], (1, Voters::Seeds));
        assert_eq!(
            (owner(&map, 0), map.named(0)),
            (Some(1), None),
            "seeds are followed, and confirm nothing"
        );
        hold(&mut map, vec![halves(3, 2), halves(3, 2)], (3, Voters::Masters));
        assert_eq!(map.masters(), [at(2), at(3)]);
        assert!(map.known(&at(1)).is_some(), "it has its number, and no slots");
    }

    #[test]
    fn what_has_moved_is_taken_back_by_the_next_round_alone() {
        let mut map = SlotMap::default();
        hold(&mut map, vec![halves(1, 2)], (1, Voters::Masters));
        let node = map.number(&at(3), Duration::ZERO).unwrap_or_default();
        map.moved(5, node, Duration::ZERO);
        assert_eq!((owner(&map, 5), owner(&map, 6)), (Some(3), Some(1)));
        hold(&mut map, vec![halves(1, 2)], (1, Voters::Masters));
        assert_eq!(owner(&map, 5), Some(1));
    }

    #[test]
    fn a_node_beyond_the_bound_has_the_number_of_one_that_has_long_been_without_slots() {
        let (mut map, secs) = (SlotMap::default(), Duration::from_secs);
        let number = |map: &mut SlotMap, port, now| map.number(&at(port), secs(now)).map(usize::from);
        hold(&mut map, vec![halves(1, 2)], (1, Voters::AnyNode));
        for port in 3..=250 {
            assert_eq!(number(&mut map, port, 10), Some(usize::from(port) - 1));
        }
        assert_eq!(number(&mut map, 251, 10 + 299), None, "it may be on its way to the others");
        assert_eq!(number(&mut map, 1, 10), Some(0));
        // The first one has its slots no longer, and another one has them.
        hold(&mut map, vec![halves(3, 2)], (1, Voters::AnyNode));
        assert_eq!(number(&mut map, 251, 299), None, "it had slots a moment ago");
        assert_eq!(number(&mut map, 251, 300), Some(0));
        assert_eq!((map.node(0), map.known(&at(1))), (Some(&at(251)), None));
        assert_eq!(number(&mut map, 252, 310), Some(3), "the second and the third have slots");
        assert_eq!((owner(&map, 0), owner(&map, 16_383)), (Some(3), Some(2)));
        map.moved(0, 0, secs(1000));
        assert_eq!(owner(&map, 0), Some(251));
    }

    #[test]
    fn answers_are_read_whole_or_not_at_all() {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let stretch = |first, last, host: Value, port| {
            let node = Value::Array(vec![host, Value::Int(port), text("id"), Value::Array(Vec::new())]);
            Value::Array(vec![Value::Int(first), Value::Int(last), node.clone(), node])
        };
        let read = |stretches: Vec<Value>| {
            told(&Value::Array(stretches), &Address::Tcp { host: "n".into(), port: 7 })
        };
        let own = Some(vec![(0, 5, at(1))]);
        assert_eq!(read(vec![stretch(0, 5, text("N"), 1)]), own);
        assert_eq!(read(vec![stretch(0, 5, text(""), 1)]), own, "the one that was asked");
        assert_eq!(read(vec![stretch(0, 5, Value::Nil, 1)]), own);
        assert_eq!(read(Vec::new()), Some(Vec::new()));
        assert_eq!(
            read(vec![stretch(0, 5, text("n"), 1), stretch(5, 6, text("n"), 1)]),
            None,
            "a slot twice"
        );
        for wrong in [
            stretch(0, 5, text("n"), 2),
            stretch(5, 0, text("n"), 1),
            stretch(0, 16_384, text("n"), 1),
            stretch(-1, 0, text("n"), 1),
            stretch(0, 1, text("a b"), 1),
            stretch(0, 1, text("n"), 0),
            stretch(0, 1, text("n"), 65_536),
            Value::Nil,
            Value::Array(vec![Value::Int(0), Value::Int(1)]),
        ] {
            assert_eq!(read(vec![stretch(0, 5, text("n"), 1), wrong.clone()]), None, "{wrong:?}");
        }
        assert_eq!(told(&Value::Nil, &at(7)), None);
    }
}
