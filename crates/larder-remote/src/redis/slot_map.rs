//! What the nodes of a cluster say of its slots (`CLUSTER SLOTS`), and what follows from all of it.
//!
//! In: the answers of a round. Out: the owner of each slot, by majority. Nodes have numbers, in the order in which they were first seen.

use std::collections::HashMap;

use ::redis::Value;

use super::slot::{SLOTS, Slot};
use crate::address::Address;

/// The most nodes that there are one after the other, as long as larder runs. Keys of slots at further ones are misses.
pub(crate) const NODES_MAX: usize = 250;

/// Who has each slot, in the words of one node: stretches, with their ends.
pub(super) type Told = Vec<(Slot, Slot, Address)>;

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
type Owners = Box<[Option<u8>; SLOTS]>;

/// See the head of the file.
pub(super) struct SlotMap {
    /// By their numbers.
    nodes: Vec<Address>,
    owners: Owners,
    /// What a majority has said in the last round.
    named: Owners,
    /// Nodes that have answered in it, and those that were asked.
    answered: (usize, usize),
    /// What was said in it. `None` after a slot has moved.
    last: Option<Vec<Told>>,
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
        self.nodes.get(usize::from((*self.named.get(usize::from(slot))?)?))
    }

    /// All that have been known, by their numbers.
    pub(super) fn nodes(&self) -> &[Address] {
        &self.nodes
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
        u8::try_from(self.nodes.iter().position(|node| node == address)?).ok()
    }

    /// The number of a node, a new one where it is not known. `None` where there are too many.
    fn number(&mut self, address: &Address) -> Option<u8> {
        if let Some(known) = self.known(address) {
            return Some(known);
        }
        let number = u8::try_from(self.nodes.len()).ok().filter(|number| usize::from(*number) < NODES_MAX)?;
        self.nodes.push(address.clone());
        Some(number)
    }

    /// A slot has another owner, as its former one says.
    pub(super) fn moved(&mut self, slot: Slot, node: u8) {
        self.last = None;
        if let Some(owner) = self.owners.get_mut(usize::from(slot))
            && owner.replace(node).is_some_and(|former| former != node)
        {
            self.changes += 1;
        }
    }

    /// Nodes that have slots.
    pub(super) fn masters(&self) -> Vec<Address> {
        let mut have_slots = [false; NODES_MAX];
        for owner in self.owners.iter().flatten() {
            have_slots.get_mut(usize::from(*owner)).into_iter().for_each(|has| *has = true);
        }
        let nodes = self.nodes.iter().zip(have_slots).filter(|(_, has_slots)| *has_slots);
        nodes.map(|(node, _)| node.clone()).collect()
    }

    /// Takes what more than half of so many say of each slot. Whose word that is: see [`Voters`].
    pub(super) fn take(&mut self, answers: Vec<Told>, (of, voters): (usize, Voters)) {
        let answered = (answers.len(), of);
        if voters == Voters::Masters && self.last.as_ref() == Some(&answers) && self.answered == answered {
            return;
        }
        self.answered = answered;
        // A node that a minority names takes no number from others.
        let named_by = |address: &Address| {
            answers.iter().filter(|told| told.iter().any(|(.., other)| other == address)).count()
        };
        let needed = if voters == Voters::AnyNode { 0 } else { of / 2 };
        let mut numbers: HashMap<&Address, Option<u8>> = HashMap::new();
        for (.., address) in answers.iter().flatten() {
            numbers.entry(address).or_insert_with(|| match named_by(address) > needed {
                true => self.number(address),
                false => self.known(address),
            });
        }
        // For the nodes that there are, and not for as many as there may be: look-ups wait for this.
        let nodes = self.nodes.len().max(1);
        let mut votes = vec![0_u8; nodes * SLOTS];
        for (first, last, address) in answers.iter().flatten() {
            let Some(node) = numbers.get(address).copied().flatten() else { continue };
            let stretch = votes.get_mut(nodes * usize::from(*first)..nodes * (usize::from(*last) + 1));
            for slot in stretch.into_iter().flat_map(|stretch| stretch.chunks_exact_mut(nodes)) {
                slot.get_mut(usize::from(node))
                    .into_iter()
                    .for_each(|votes| *votes = votes.saturating_add(1));
            }
        }
        let votes = votes.chunks_exact(nodes);
        for ((votes, owner), named) in votes.zip(&mut self.owners[..]).zip(&mut self.named[..]) {
            let most = votes.iter().zip(0_u8..).max_by_key(|(votes, _)| **votes);
            let elected = most.filter(|(votes, _)| usize::from(**votes) > needed).map(|(_, node)| node);
            *named = elected.filter(|_| voters == Voters::Masters);
            let is_other = owner.is_some() && elected.is_some() && *owner != elected;
            self.changes += u64::from(is_other);
            *owner = elected.or(*owner);
        }
        self.last = (voters == Voters::Masters).then_some(answers);
    }
}

/// The answer to `CLUSTER SLOTS`: each stretch with its master first. An empty host stands for the one that was asked.
pub(super) fn told(reply: &Value, asked: &Address) -> Option<Told> {
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
    map.take(vec![told.clone()], (1, Voters::AnyNode));
    map.take(vec![told], (1, Voters::Masters));
    map.masters().len().le(&NODES_MAX).then_some(stretches)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> Address {
        Address::Tcp { host: "n".to_owned(), port }
    }

    /// Who has a slot, by the port.
    fn owner(map: &SlotMap, slot: Slot) -> Option<u16> {
        match map.nodes.get(map.owner(slot)?)? {
            Address::Tcp { port, .. } => Some(*port),
            Address::Unix(_) => None,
        }
    }

    fn halves(first: u16, second: u16) -> Told {
        vec![(0, 8191, at(first)), (8192, 16_383, at(second))]
    }

    #[test]
    fn the_first_answer_is_believed_and_then_a_majority_of_the_masters() {
        let mut map = SlotMap::default();
        map.take(vec![halves(1, 2)], (3, Voters::AnyNode));
        assert_eq!((owner(&map, 0), owner(&map, 16_383)), (Some(1), Some(2)));
        assert_eq!(map.named(0), None, "one answer names nothing");
        assert_eq!(map.masters(), [at(1), at(2)]);
        // One of three that is cut off.
        map.take(vec![halves(1, 2), halves(3, 2), halves(3, 2)], (3, Voters::Masters));
        assert_eq!((owner(&map, 0), owner(&map, 16_383)), (Some(3), Some(2)));
        assert_eq!(map.named(0), Some(&at(3)));
        map.take(vec![halves(1, 2)], (3, Voters::Masters));
        assert_eq!((owner(&map, 0), map.named(0)), (Some(3), None), "what was known stays, and is not named");
        map.take(vec![halves(1, 2), halves(2, 1)], (3, Voters::Masters));
        assert_eq!(owner(&map, 0), Some(3), "nor is it changed by as many as contradict each other");
        map.take(vec![halves(9, 9)], (3, Voters::Masters));
        assert_eq!(map.known(&at(9)), None, "a minority names no node");
        map.take(vec![halves(1, 2)], (1, Voters::Seeds));
        assert_eq!(
            (owner(&map, 0), map.named(0)),
            (Some(1), None),
            "seeds are followed, and confirm nothing"
        );
        map.take(vec![halves(3, 2), halves(3, 2)], (3, Voters::Masters));
        assert_eq!(map.masters(), [at(2), at(3)]);
    }

    #[test]
    fn what_has_moved_is_taken_back_by_the_next_round_alone() {
        let mut map = SlotMap::default();
        map.take(vec![halves(1, 2)], (1, Voters::Masters));
        let node = map.number(&at(3)).unwrap_or_default();
        map.moved(5, node);
        assert_eq!((owner(&map, 5), owner(&map, 6)), (Some(3), Some(1)));
        map.take(vec![halves(1, 2)], (1, Voters::Masters));
        assert_eq!(owner(&map, 5), Some(1));
    }

    #[test]
    fn nodes_beyond_the_bound_have_no_number() {
        let mut map = SlotMap::default();
        for port in 1..=300 {
            let number = map.number(&at(port)).map(usize::from);
            assert_eq!(number, (usize::from(port) <= NODES_MAX).then(|| usize::from(port) - 1));
        }
        assert_eq!(map.number(&at(1)), Some(0));
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
