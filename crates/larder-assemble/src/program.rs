//! A compiled template: a list of operations over byte offsets of its body.
//!
//! In: operations, while the body arrives ([`crate::compile::Compiler`]). Out: the same to any number of pages that run meanwhile or later.
//! Text is what lies between two operations, and has no operation of its own. So the program is the same however the body
//! was cut into pieces, and how far text is known is one number. Offsets, because a stored body may be cut anew at any time.
//! Branches and attempts are markers in the list: it can be run while it grows, and what is not taken is skipped by counting.

use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use larder_http::target::reference::DocumentUri;
use larder_http::template::Language;

use crate::composed::Composed;
use crate::expression::{esi, ssi};
use crate::list::List;
use crate::name;
use crate::problem::Problems;
use crate::source::Source;

/// Operations of one page, and so the most that a program holds.
pub(crate) const OPERATIONS_MAX: usize = 100_000;
/// Conditions, attempts and blocks within each other.
pub(crate) const DEPTH_MAX: usize = 32;

/// A compiled template.
pub struct Program {
    language: Language,
    uri: DocumentUri,
    operations: List<Operation>,
    /// All before this offset that no operation covers is text.
    known_until: AtomicU64,
    weight: AtomicUsize,
    problems: OnceLock<Problems>,
}

/// An operation, and the bytes of the body that stand for it.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) at: Range<u64>,
    pub(crate) op: Op,
}

/// What is done.
#[derive(Debug)]
pub(crate) enum Op {
    /// Nothing: these bytes are no text.
    Skip,
    /// SSI's error text.
    Error,
    Include(Box<Include>),
    /// SSI's `echo`.
    Echo(Box<Echo>),
    /// A variable in ESI's `vars`.
    Variable(Box<name::esi::EsiName>),
    Set(Box<Set>),
    If(Test),
    ElseIf(Test),
    Else,
    Try,
    Except,
    Block(Box<[u8]>),
    /// Of `If`, `Try` and `Block`.
    End,
    Config(Box<Config>),
}

/// An include.
#[derive(Debug)]
pub(crate) struct Include {
    pub(crate) source: Source,
    /// `alt` or `onerror="/path"`.
    pub(crate) otherwise: Option<Source>,
    /// The block that stands in for it, in lower case.
    pub(crate) stub: Option<Box<[u8]>>,
    /// `onerror="continue"`.
    pub(crate) may_be_missing: bool,
    /// What follows waits for it.
    pub(crate) waits: bool,
    /// The variable that it becomes, in lower case.
    pub(crate) set: Option<Box<[u8]>>,
    /// `dca="none"`: it is no template, whatever it says.
    pub(crate) as_it_is: bool,
    /// `maxwait`, in milliseconds.
    pub(crate) wait_ms_max: Option<u32>,
}

/// What `echo` writes.
#[derive(Debug)]
pub(crate) struct Echo {
    pub(crate) name: name::ssi::SsiName,
    pub(crate) default: Option<Bytes>,
    pub(crate) encoding: Encoding,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Entity,
    Url,
    Base64,
    None,
}

/// `set` and `assign`.
#[derive(Debug)]
pub(crate) struct Set {
    /// In lower case in SSI.
    pub(crate) name: Box<[u8]>,
    pub(crate) value: Composed,
}

/// A condition.
#[derive(Debug)]
pub(crate) enum Test {
    Ssi(Box<ssi::SsiCondition>),
    Esi(Box<esi::EsiCondition>),
    /// It could not be read: false, and in SSI an error text as well.
    Unreadable,
}

/// SSI's `config`.
#[derive(Debug, Default)]
pub(crate) struct Config {
    pub(crate) error_text: Option<Bytes>,
    pub(crate) missing_text: Option<Bytes>,
    pub(crate) date_format: Option<Bytes>,
}

impl Program {
    pub(crate) fn new(language: Language, uri: DocumentUri) -> Self {
        Self {
            language,
            uri,
            operations: List::new(),
            known_until: AtomicU64::new(0),
            weight: AtomicUsize::new(0),
            problems: OnceLock::new(),
        }
    }

    /// The language of the template.
    pub fn language(&self) -> Language {
        self.language
    }

    /// The URI against which its references were resolved.
    pub fn uri(&self) -> &DocumentUri {
        &self.uri
    }

    /// Whether it is compiled to its end.
    pub fn is_complete(&self) -> bool {
        self.problems.get().is_some()
    }

    /// Whether it holds a directive by now. A complete program without one is no template: its body goes out as it is.
    pub fn has_operations(&self) -> bool {
        self.operations.len() > 0
    }

    /// How many bytes of the body are compiled. Bytes beyond may be the beginning of a directive.
    pub fn compiled_bytes(&self) -> u64 {
        self.known_until.load(Ordering::Acquire)
    }

    /// About how much memory it takes, in bytes.
    pub fn weight(&self) -> usize {
        size_of::<Self>() + self.weight.load(Ordering::Relaxed)
    }

    /// What is wrong with the template; `None` until it is complete.
    pub fn problems(&self) -> Option<&Problems> {
        self.problems.get()
    }

    pub(crate) fn operation(&self, index: usize) -> Option<&Operation> {
        self.operations.item(index)
    }

    /// Appends; false where a program has no more room.
    pub(crate) fn push(&self, operation: Operation) -> bool {
        self.weight.fetch_add(size_of::<Operation>() + operation.op.weight(), Ordering::Relaxed);
        self.operations.push(operation)
    }

    /// All before `offset` is either covered by an operation that was pushed, or text.
    pub(crate) fn know_until(&self, offset: u64) {
        self.known_until.store(offset, Ordering::Release);
    }

    pub(crate) fn finish(&self, problems: Problems) {
        // A program has one compiler, which finishes once.
        let _ = self.problems.set(problems);
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("language", &self.language)
            .field("operations", &self.operations)
            .field("known_until", &self.compiled_bytes())
            .field("problems", &self.problems)
            .finish_non_exhaustive()
    }
}

impl Op {
    /// About how many bytes it takes beside its place in the list.
    fn weight(&self) -> usize {
        match self {
            Self::Include(include) => {
                let otherwise = include.otherwise.as_ref().map_or(0, Source::weight);
                size_of::<Include>() + include.source.weight() + otherwise
            }
            Self::Echo(_) => size_of::<Echo>() + 64,
            Self::Variable(_) => size_of::<name::esi::EsiName>() + 64,
            Self::Set(set) => size_of::<Set>() + set.value.weight(),
            Self::If(test) | Self::ElseIf(test) => match test {
                Test::Ssi(test) => 256 + test.patterns() * 64 * 1024,
                Test::Esi(_) => 256,
                Test::Unreadable => 0,
            },
            Self::Block(name) => name.len(),
            Self::Config(_) => 256,
            Self::Skip | Self::Error | Self::Else | Self::Try | Self::Except | Self::End => 0,
        }
    }
}
