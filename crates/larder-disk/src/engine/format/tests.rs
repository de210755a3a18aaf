//! Every format: what is written is what is read, and any bytes can be read.

use proptest::prelude::*;

use super::journal::{JournalEntry, JournalHead, read_entries};
use super::record::{HEADER_BYTES, Header, Kind, Record, read_pieces, write_pieces};
use super::segment::SegmentHead;
use super::superblock::Superblock;
use super::toc::{Toc, TocEntry};
use super::*;
use crate::engine::address::{SEGMENT_MAX, Seed};
use crate::engine::format::record::PieceRef;
use larder_tier::Note;
use larder_tier::format::entry::{JournalEntries, NOTE_BYTES_MAX};

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Inline), Just(Kind::Listing), Just(Kind::Piece)]
}

fn toc_entries() -> impl Strategy<Value = TocEntry> {
    let numbers = any::<(bool, u32, u64, u64, u32, u32, u64)>();
    (kinds(), numbers).prop_map(|(kind, (is_dead, tag, base, number, offset, length, object_bytes))| {
        TocEntry { kind, is_dead, tag, base, number, offset, length, object_bytes }
    })
}

fn journal_entries() -> impl Strategy<Value = JournalEntry> {
    prop_oneof![
        any::<(u64, u64)>().prop_map(|(base, number)| JournalEntry::Invalidated { base, number }),
        any::<u64>().prop_map(|place| JournalEntry::Removed { place }),
        (any::<u64>(), prop::collection::vec(any::<u8>(), 0..=NOTE_BYTES_MAX))
            .prop_map(|(number, what)| JournalEntry::Note(Note { number, moment: number / 3, what })),
        (0..=SEGMENT_MAX).prop_map(|segment| JournalEntry::NeedsToc { segment }),
        (any::<u64>(), 0..=SEGMENT_MAX)
            .prop_map(|(number, segment)| JournalEntry::Reached { number, segment }),
    ]
}

fn piece_refs() -> impl Strategy<Value = PieceRef> {
    (any::<(u64, u32, u32, u32)>(), 0..=crate::engine::format::record::PIECE_BYTES_MAX as u32)
        .prop_map(|((disk, segment, offset, crc), length)| PieceRef { disk, segment, offset, length, crc })
}

/// A record of these parts as it lies in a segment.
fn record(number: u64, parts: &[Vec<u8>; 4]) -> Vec<u8> {
    let [base, variant, head, content] = parts;
    let key = [&base[..], variant].concat();
    let header = Header {
        kind: Kind::Inline,
        disk: 1,
        segment: 2,
        tag: 3,
        base: 4,
        number,
        stored_at_ms: 5,
        identity: 6,
        base_bytes: base.len() as u32,
        variant_bytes: variant.len() as u32,
        head_bytes: head.len() as u32,
        content_bytes: content.len() as u32,
        object_bytes: 7,
        key_crc: crc(&key),
        head_crc: crc(head),
        content_crc: crc(content),
    };
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    assert_eq!((bytes.len(), Header::read(&bytes)), (HEADER_BYTES, Some(header)));
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes
}

proptest! {
    #[test]
    fn heads_of_files_are_read_as_written(numbers in any::<[u64; 4]>(), segment in any::<u32>()) {
        let [disk, one, other, segment_bytes] = numbers;
        let superblock = Superblock { disk, seed: Seed([one, other]), segment_bytes };
        prop_assert_eq!(Superblock::read(&superblock.write()), Some(superblock));
        let head = SegmentHead { disk, segment };
        prop_assert_eq!(SegmentHead::read(&head.write()), Some(head));
        let head = JournalHead { disk, generation: segment };
        prop_assert_eq!(JournalHead::read(&head.write()), Some(head));
    }

    #[test]
    fn a_table_is_read_as_written(ids in any::<(u64, u32, u64)>(), entries in prop::collection::vec(toc_entries(), 0..50)) {
        let toc = Toc { disk: ids.0, segment: ids.1, end: ids.2, entries };
        let bytes = toc.write();
        prop_assert_eq!(bytes.len() as u64, toc::toc_bytes(toc.entries.len()));
        prop_assert_eq!(Toc::read(&bytes), Some(toc));
    }

    #[test]
    fn a_record_is_read_as_written_and_no_bit_of_it_may_turn(
        number in any::<u64>(),
        parts in prop::array::uniform4(prop::collection::vec(any::<u8>(), 0..40)),
        turn in any::<prop::sample::Index>(),
    ) {
        let mut bytes = record(number, &parts);
        let read = Record::read(&bytes).expect("as written");
        prop_assert_eq!([read.base, read.variant, read.head, read.content], parts.each_ref().map(|part| &part[..]));
        prop_assert_eq!(read.header.number, number);
        let turn = turn.index(bytes.len() * 8);
        bytes[turn / 8] ^= 1 << (turn % 8);
        prop_assert!(Record::read(&bytes).is_none(), "bit {}", turn);
    }

    #[test]
    fn a_list_of_pieces_is_read_as_written(pieces in prop::collection::vec(piece_refs(), 0..20)) {
        prop_assert_eq!(read_pieces(&write_pieces(&pieces)), Some(pieces));
    }

    #[test]
    fn a_journal_is_read_as_written(entries in prop::collection::vec(journal_entries(), 0..20), torn in 0_usize..8) {
        let mut bytes = Vec::new();
        entries.iter().for_each(|entry| entry.write(&mut bytes));
        let end = bytes.len();
        bytes.extend(std::iter::repeat_n(0xff, torn));
        prop_assert_eq!(read_entries(&bytes), JournalEntries { entries, end, lost_up_to: None });
    }

    #[test]
    fn damage_within_a_journal_is_told_with_the_numbers_that_may_be_lost(
        entries in prop::collection::vec(journal_entries(), 3..10),
        which in any::<prop::sample::Index>(),
    ) {
        let which = which.index(entries.len() - 1);
        let (mut bytes, mut starts) = (Vec::new(), Vec::new());
        for entry in &entries {
            starts.push(bytes.len());
            entry.write(&mut bytes);
        }
        bytes[starts[which]] ^= 1;
        let read = read_entries(&bytes);
        prop_assert!(read.lost_up_to.is_some());
        prop_assert!(read.lost_up_to >= entries[which + 1..].iter().map(JournalEntry::number).max());
    }

    #[test]
    fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = (Superblock::read(&bytes), SegmentHead::read(&bytes), JournalHead::read(&bytes));
        let _ = (Toc::read(&bytes), Record::read(&bytes).is_some(), read_pieces(&bytes));
        let read = read_entries(&bytes);
        prop_assert!(read.end <= bytes.len());
    }
}

#[test]
fn an_entry_that_is_torn_within_its_padding_is_no_entry() {
    // Whoever went on writing behind it would write where nobody looks for entries.
    let mut bytes = Vec::new();
    JournalEntry::Removed { place: 1 }.write(&mut bytes);
    let end = bytes.len();
    JournalEntry::NeedsToc { segment: 1 }.write(&mut bytes);
    assert_eq!(bytes.len() - end, 16, "4 of them are padding");
    for cut in bytes.len() - 4..bytes.len() {
        assert_eq!(read_entries(&bytes[..cut]).end, end, "{cut}");
    }
    *bytes.last_mut().unwrap() = 1;
    assert_eq!(read_entries(&bytes).end, end);
}

#[test]
fn no_entry_names_a_segment_that_none_can_follow() {
    let mut bytes = Vec::new();
    JournalEntry::NeedsToc { segment: SEGMENT_MAX + 1 }.write(&mut bytes);
    JournalEntry::Reached { number: 1, segment: u32::MAX }.write(&mut bytes);
    assert!(read_entries(&bytes).entries.is_empty());
}

#[test]
fn no_header_counts_more_than_the_longest_record() {
    let mut bytes = record(1, &[vec![], vec![], vec![], vec![]]);
    let longest = (record::RECORD_BYTES_MAX - HEADER_BYTES as u64) as u32;
    let header = Header::read(&bytes).unwrap();
    for (content_bytes, is_read) in [(longest, true), (longest + 1, false), (u32::MAX, false)] {
        bytes.clear();
        Header { content_bytes, ..header }.write(&mut bytes);
        assert_eq!(Header::read(&bytes).is_some(), is_read, "{content_bytes}");
    }
}

/// A payload that looks like an entry inside a damaged one is only a note's own bytes; it can say nothing that was not
/// checked, but it must not make reading loop.
#[test]
fn zeros_are_no_entries() {
    let read = read_entries(&[0; 4096]);
    assert_eq!((read.entries.len(), read.end, read.lost_up_to), (0, 0, None));
}
