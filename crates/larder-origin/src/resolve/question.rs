//! One question to a name server, as bytes, and what may be believed of the bytes that come back.
//!
//! In: a name and what is asked about it. Out: a query with an unpredictable number, and for each message that arrives
//! a [`Reading`]: somebody else's, cut short, a refusal, or records. An alias is followed inside the answer, because
//! whoever is asked resolves recursively (RFC 1034 4.3.1); only records of the name at its end count. That a name does
//! not exist, or has nothing of the kind, is an answer without records (RFC 2308 2); a server that only knows whom else
//! to ask has not answered.
//! Deliberately absent: DNSSEC (whoever needs it runs a validating resolver beside larder), addresses in the additional
//! section (they would be believed without having been asked for), lifetimes. RFC 1035 4, RFC 2782, RFC 6891.

use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr as _;

use domain::base::iana::{Class, Opcode, Rcode};
use domain::base::{Message, MessageBuilder, Name, ParsedName, Rtype, ToName as _};
use domain::rdata::{A, Aaaa, Srv};

/// What we say that we take over UDP: fits the smallest packet of IPv6 whole, so it is never fragmented.
pub(super) const UDP_BYTES: u16 = 1232;

/// Records of one answer that are looked at.
const RECORDS_MAX: usize = 256;

/// What is asked about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// IPv4 addresses (A).
    V4,
    /// IPv6 addresses (AAAA).
    V6,
    /// Where a service is offered (SRV).
    Service,
}

/// One record of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DnsRecord {
    Address(IpAddr),
    Service(Service),
}

/// One place where a service is offered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Service {
    /// The lowest is used first.
    pub(super) priority: u16,
    /// Share among those of one priority; 0 is legal.
    pub(super) weight: u16,
    pub(super) port: u16,
    /// Without the last dot, lower case; empty where the service is expressly not offered.
    pub(super) host: String,
}

/// What an arrived message is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// No answer to this question; the true one may still come.
    NotOurs,
    /// Does not fit a datagram: to be asked again over TCP.
    Truncated,
    /// The server cannot or will not answer.
    Refused(&'static str),
    /// None: there are none.
    Records(Vec<DnsRecord>),
}

/// A question with its number.
#[derive(Debug)]
pub(super) struct Question {
    name: Name<Vec<u8>>,
    kind: Kind,
    id: u16,
}

impl Question {
    /// `None` for a name that DNS cannot carry.
    pub(super) fn new(name: &str, kind: Kind) -> Option<Self> {
        let name = Name::from_str(name).ok()?;
        // Keyed by the system's randomness: who does not see the query can only guess its number, and the port too.
        let id = RandomState::new().hash_one(&name).to_ne_bytes();
        Some(Self { name, kind, id: u16::from_ne_bytes([id[0], id[1]]) })
    }

    fn rtype(&self) -> Rtype {
        match self.kind {
            Kind::V4 => Rtype::A,
            Kind::V6 => Rtype::AAAA,
            Kind::Service => Rtype::SRV,
        }
    }

    /// The query. Asks for recursion and names [`UDP_BYTES`].
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut message = MessageBuilder::new_vec();
        message.header_mut().set_id(self.id);
        message.header_mut().set_opcode(Opcode::QUERY);
        message.header_mut().set_rd(true);
        let mut message = message.question();
        // Neither push can fail: a name, four bytes and an option are far from filling a message.
        let _ = message.push((&self.name, self.rtype(), Class::IN));
        let mut message = message.additional();
        let _ = message.opt(|opt| {
            opt.set_udp_payload_size(UDP_BYTES);
            Ok(())
        });
        message.finish()
    }

    /// What `bytes` are to this question.
    pub(super) fn read(&self, bytes: &[u8]) -> Reading {
        let Ok(message) = Message::from_slice(bytes) else {
            return Reading::NotOurs;
        };
        let header = message.header();
        if header.id() != self.id || !header.qr() || header.opcode() != Opcode::QUERY {
            return Reading::NotOurs;
        }
        let is_ours = message.sole_question().is_ok_and(|asked| {
            asked.qname().name_eq(&self.name) && asked.qtype() == self.rtype() && asked.qclass() == Class::IN
        });
        // A server that does not understand the question may leave it out of its refusal.
        let has_none = message.header_counts().qdcount() == 0;
        if !is_ours && !has_none {
            return Reading::NotOurs;
        }
        match header.rcode() {
            Rcode::NOERROR | Rcode::NXDOMAIN if !is_ours => return Reading::NotOurs,
            Rcode::NOERROR | Rcode::NXDOMAIN => {}
            Rcode::FORMERR => return Reading::Refused("the name server does not understand the question"),
            Rcode::SERVFAIL => return Reading::Refused("the name server failed"),
            Rcode::REFUSED => return Reading::Refused("the name server refuses to answer"),
            _ => return Reading::Refused("the name server reports an error"),
        }
        if header.tc() {
            return Reading::Truncated;
        }
        let Some(records) = self.records(message) else {
            return Reading::Refused("the name server's answer is malformed");
        };
        let is_referral = header.rcode() == Rcode::NOERROR && !header.aa() && !header.ra();
        if records.is_empty() && is_referral {
            return Reading::Refused("the name server does not resolve for others");
        }
        Reading::Records(records)
    }

    /// The records asked for; `None` where the answer cannot be read to its end, or its aliases never end.
    fn records(&self, message: &Message<[u8]>) -> Option<Vec<DnsRecord>> {
        let owner = message.canonical_name()?;
        let mut records = Vec::new();
        for record in message.answer().ok()? {
            let record = record.ok()?;
            if records.len() >= RECORDS_MAX {
                break;
            }
            if record.class() != Class::IN || record.rtype() != self.rtype() || record.owner() != owner {
                continue;
            }
            records.push(match self.kind {
                Kind::V4 => {
                    let address: Ipv4Addr = record.into_record::<A>().ok()??.data().addr();
                    DnsRecord::Address(address.into())
                }
                Kind::V6 => {
                    let address: Ipv6Addr = record.into_record::<Aaaa>().ok()??.data().addr();
                    DnsRecord::Address(address.into())
                }
                Kind::Service => {
                    let record = record.into_record::<Srv<ParsedName<&[u8]>>>().ok()??;
                    let at = record.data();
                    DnsRecord::Service(Service {
                        priority: at.priority(),
                        weight: at.weight(),
                        port: at.port(),
                        host: host_name(at.target())?,
                    })
                }
            });
        }
        Some(records)
    }
}

/// A target's name as text. `None` where it has bytes that no host name has.
fn host_name(name: &ParsedName<&[u8]>) -> Option<String> {
    if name.is_root() {
        return Some(String::new());
    }
    let text = name.to_string().to_ascii_lowercase();
    text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_')).then_some(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CUT: &str = "the name server's answer is malformed";

    /// An answer to `question`, from flags and records written by hand: the names in it point at byte 12.
    fn answer(question: &Question, flags: [u8; 2], records: &[(u16, &[u8])]) -> Vec<u8> {
        let query = question.to_bytes();
        let asked = question.name.as_octets().len() + 4;
        let mut bytes = query[..12 + asked].to_vec();
        bytes[2..4].copy_from_slice(&flags);
        bytes[6..8].copy_from_slice(&u16::try_from(records.len()).unwrap().to_be_bytes());
        bytes[10..12].copy_from_slice(&[0, 0]);
        for (rtype, data) in records {
            bytes.extend([0xc0, 12]);
            bytes.extend(rtype.to_be_bytes());
            bytes.extend([0, 1, 0, 0, 0, 60]);
            bytes.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
            bytes.extend(*data);
        }
        bytes
    }

    /// An answer, recursion asked for and offered, no error.
    const FINE: [u8; 2] = [0x81, 0x80];

    fn v4(last: u8) -> DnsRecord {
        DnsRecord::Address(IpAddr::from([192, 0, 2, last]))
    }

    #[test]
    fn a_query_asks_one_thing_recursively_and_says_how_much_it_takes() {
        let question = Question::new("App.example", Kind::V6).unwrap();
        let query = question.to_bytes();
        let expected = b"\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01\x03App\x07example\x00\x00\x1c\x00\x01";
        assert_eq!(&query[2..12 + 17], expected);
        assert_eq!(&query[29..], b"\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00");
        let ids: std::collections::HashSet<u16> =
            (0..64).map(|_| Question::new("app.example", Kind::V4).unwrap().id).collect();
        assert!(ids.len() > 32, "numbers repeat: {ids:?}");
    }

    #[test]
    fn records_of_the_kind_asked_for_are_read_and_others_passed_over() {
        let question = Question::new("app.example", Kind::V4).unwrap();
        let bytes = answer(&question, FINE, &[(1, &[192, 0, 2, 1]), (16, b"\x01x"), (1, &[192, 0, 2, 2])]);
        assert_eq!(question.read(&bytes), Reading::Records(vec![v4(1), v4(2)]));
        let question = Question::new("app.example", Kind::V6).unwrap();
        let bytes = answer(&question, FINE, &[(28, &[0; 16])]);
        assert_eq!(
            question.read(&bytes),
            Reading::Records(vec![DnsRecord::Address(IpAddr::from([0u8; 16]))])
        );
    }

    #[test]
    fn services_carry_priority_weight_port_and_host() {
        let question = Question::new("_app._tcp.example", Kind::Service).unwrap();
        let service = |priority, weight, port, host: &str| {
            DnsRecord::Service(Service { priority, weight, port, host: host.to_owned() })
        };
        let cases: &[(&[u8], Reading)] = &[
            (
                b"\x00\x01\x00\x05\x1f\x90\x01A\x07Example\x00",
                Reading::Records(vec![service(1, 5, 8080, "a.example")]),
            ),
            (b"\x00\x00\x00\x00\x00\x00\x00", Reading::Records(vec![service(0, 0, 0, "")])),
            (b"\x00\x00\x00\x00\x00\x50\x03a b\x00", Reading::Refused(CUT)),
            (b"\x00\x00\x00\x00\x00\x50\x03a.b\x00", Reading::Refused(CUT)),
            (b"\x00\x00\x00\x00\x00", Reading::Refused(CUT)),
            (b"\x00\x00\x00\x00\x00\x50\x09a", Reading::Refused(CUT)),
        ];
        for (data, expected) in cases {
            assert_eq!(question.read(&answer(&question, FINE, &[(33, data)])), *expected, "{data:?}");
        }
    }

    #[test]
    fn an_alias_is_followed_and_a_ring_of_aliases_refused() {
        let question = Question::new("app.example", Kind::V4).unwrap();
        let mut bytes = answer(&question, FINE, &[(5, b"\x01b\xc0\x10"), (1, &[192, 0, 2, 7])]);
        // Let the address belong to the alias's end, which lies in the first record's data.
        let alias_at = u8::try_from(12 + 13 + 4 + 12).unwrap();
        let owner_at = bytes.len() - 16;
        bytes[owner_at + 1] = alias_at;
        assert_eq!(question.read(&bytes), Reading::Records(vec![v4(7)]));
        bytes[owner_at + 1] = 12;
        assert_eq!(
            question.read(&bytes),
            Reading::Records(Vec::new()),
            "an address beside an alias is not its"
        );
        let ring = answer(&question, FINE, &[(5, b"\xc0\x0c")]);
        assert_eq!(question.read(&ring), Reading::Refused(CUT));
    }

    #[test]
    fn only_an_answer_to_this_question_counts_and_each_refusal_is_told() {
        let question = Question::new("app.example", Kind::V4).unwrap();
        let fine = answer(&question, FINE, &[(1, &[192, 0, 2, 1])]);
        let with = |at: usize, value: u8| {
            let mut bytes = fine.clone();
            bytes[at] = value;
            bytes
        };
        let empty = |flags| answer(&question, flags, &[]);
        let cases = [
            ("the same in other letters", with(13, b'A'), Reading::Records(vec![v4(1)])),
            ("another number", with(0, fine[0] ^ 1), Reading::NotOurs),
            ("a question", with(2, 0x01), Reading::NotOurs),
            ("another name", with(13, b'b'), Reading::NotOurs),
            ("another kind", with(26, 28), Reading::NotOurs),
            ("cut short", with(2, 0x83), Reading::Truncated),
            ("no such name", empty([0x81, 0x83]), Reading::Records(Vec::new())),
            ("nothing of the kind", empty(FINE), Reading::Records(Vec::new())),
            ("nothing, by its owner", empty([0x85, 0x00]), Reading::Records(Vec::new())),
            (
                "a referral",
                empty([0x81, 0x00]),
                Reading::Refused("the name server does not resolve for others"),
            ),
            ("a failure", empty([0x81, 0x82]), Reading::Refused("the name server failed")),
            ("a refusal", empty([0x81, 0x85]), Reading::Refused("the name server refuses to answer")),
            ("a missing record", with(7, 2), Reading::Refused(CUT)),
            ("too short", fine[..11].to_vec(), Reading::NotOurs),
        ];
        for (what, bytes, expected) in cases {
            assert_eq!(question.read(&bytes), expected, "{what}");
        }
        let mut bare = fine[..12].to_vec();
        bare[2..12].copy_from_slice(&[0x81, 0x81, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(
            question.read(&bare),
            Reading::Refused("the name server does not understand the question"),
            "a refusal may leave the question out"
        );
        bare[3] = 0x83;
        assert_eq!(question.read(&bare), Reading::NotOurs, "a denial may not");
    }

    #[test]
    fn names_that_dns_cannot_carry_are_not_asked() {
        for (name, can_be_asked) in [
            ("app.example", true),
            ("app.example.", true),
            ("_app._tcp.example", true),
            ("a..example", false),
            (&"a".repeat(64), false),
            (&"a.".repeat(130), false),
        ] {
            assert_eq!(Question::new(name, Kind::V4).is_some(), can_be_asked, "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(
            kind in prop::sample::select(vec![Kind::V4, Kind::V6, Kind::Service]),
            flags: [u8; 2],
            noise in prop::collection::vec(any::<u8>(), 0..80),
            rtype in prop::sample::select(vec![1u16, 5, 28, 33, 41]),
            counts: [u8; 8],
        ) {
            let question = Question::new("app.example", kind).unwrap();
            let mut bytes = answer(&question, flags, &[(rtype, &noise)]);
            let _ = question.read(&bytes);
            bytes[4..12].copy_from_slice(&counts);
            let _ = question.read(&bytes);
            bytes.truncate(29);
            bytes.extend(&noise);
            let _ = question.read(&bytes);
        }
    }
}
